from traindx.analysis.program.training.claims import cite, each_place, finding, source_text
from traindx.analysis.program.training.picks import wrong_picks
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """An argmax runs over the batch, or over a single output.

    ## What it detects
    An argmax over dimension 0 of a batch of outputs that is compared with the labels, and an argmax
    over the output of a linear layer with one unit.

    ## Why it matters
    Training may be fine while the number that decides about it is not: chance-level accuracy, or
    one class for ever.

    ## What to do
    `argmax(dim=1)` over classes; a threshold for a single logit.

    ## When it is wrong
    Outputs without a batch dimension are rightly taken over dimension 0; only outputs of a model
    within a loop over batches are looked at. So are scores of several rows, where a single unit is
    no single class, and matrices of similarities, where both dimensions are the batch.
    """
    for event, claim in each_place(run, wrong_picks, lambda pick: pick[0].node):
        evidence = cite(event, f"`{source_text(event)}`")
        yield finding(claim, evidence, at=event)


_PROGRAM = """
model = nn.Linear(8, {units})
{before:}
for epoch in range(3):
    {top:correct = 0}
    for data, target in val_loader:
        output = model(data)
        pred = {pred:output.argmax(1)}
        correct += {count:(pred == target).sum().item()}
    print(100 * correct / len({over:val_loader.dataset}))
"""
_program = template(_PROGRAM, units=3)

_BAG = """
class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(64, 1)

    def forward(self, bag):
        scores = self.score(bag)
        return scores.argmax(dim={dim})
"""

FIRES = {
    "one unit, whatever the rows": script(_BAG, path="model.py", dim=-1),
    "over the batch": _program(pred="output.argmax(dim=0)"),
    "the second of a maximum, over the batch": _program(pred="torch.max(output, 0)[1]"),
    "over one logit": _program(pred="torch.argmax(output, dim=1)", units=1),
}

SILENT = {
    "over classes": _program(),
    "near miss: the best of a set": script(_BAG, path="model.py", dim=1),
    "near miss: both ways over similarities": _program(
        pred="output.argmax(dim=0)",
        count="(pred == target).sum() + (output.argmax(1) == target).sum()",
    ),
    "near miss: similarities that are turned": _program(
        pred="output.argmax(dim=0)\n        back = output.T.argmax(dim=0)"
    ),
    "near miss: one example of the batch under its name": _program(
        pred="0\n        output = output[0]\n        pred = output.argmax(0)"
    ),
    "near miss: one sample": _program(pred="output[0].argmax(0)"),
}
