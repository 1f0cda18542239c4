from traindx.analysis.program.training.claims import Story, each_place, finding
from traindx.analysis.program.training.weight_averages import LostAverage, lost_averages
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("incomplete-checkpoint",))
def check(run: Run) -> Findings:
    """A moving average of the weights (EMA) is not in the checkpoint that training goes on from.

    ## What it detects
    A program that resumes model and optimizer, and moves an average of the weights on at every
    step: copies of the parameters that are updated in place, a deep copy of the model, torch's
    `AveragedModel`. Its saved dictionary is in sight and does not hold the average.

    ## Why it matters
    After a restart the average begins at the first random weights, and everything that is judged or
    exported by it is worse for thousands of steps, while the loss goes on as before.

    ## What to do
    Save and load the average beside the model, or begin it anew from the restored weights.

    ## When it is wrong
    An average that is made after the weights are restored, that is loaded with anything, or that
    something out of sight gets hold of is left alone.
    """
    for lost in each_place(run, _lost, lambda lost: lost.average.event.node):
        yield finding(
            "Training goes on from a checkpoint without the moving average of the weights",
            (lost.average.event, "the average is moved on here"),
            (lost.save.deed, "the checkpoint leaves it out: it begins anew at every resume"),
            at=lost.save.deed,
        )


def _lost(story: Story) -> list[LostAverage]:
    return list(lost_averages(story.program, story))


_PROGRAM = """
import copy
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 2)
    def forward(self, x):
        return self.fc(x)

model = Net()
optimizer = torch.optim.Adam(model.parameters())
ema = {made}
saved = torch.load("last.pt")
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
{restore}
for epoch in range(saved["epoch"], 100):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        {move}
    torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "epoch": epoch{more}}}, "last.pt")
"""
_TENSORS = "[p.detach().clone() for p in model.parameters()]"
_MOVE = "for a, p in zip(ema, model.parameters()): a.mul_(0.99).add_(p.detach(), alpha=0.01)"
_AVERAGED = "torch.optim.swa_utils.AveragedModel(model)"
_COPY = "for a, p in zip(ema.parameters(), model.parameters()): a.data.lerp_(p.data, 0.01)"
_program = template(_PROGRAM, made=_TENSORS, restore="", move=_MOVE, more="")

FIRES = {
    "copies of the parameters": _program(),
    "torch's averaged model": _program(_AVERAGED, move="ema.update_parameters(model)"),
    "a copy of the model": _program("copy.deepcopy(model)", move=_COPY),
}

SILENT = {
    "saved": _program(more=', "ema": ema'),
    "near miss: saved as a state": _program(
        _AVERAGED, move="ema.update_parameters(model)", more=', "ema": ema.state_dict()'
    ),
    "near miss: a target network that is synchronised": _program(
        "copy.deepcopy(model)", "ema.load_state_dict(model.state_dict())", _COPY
    ),
    "near miss: begun from the restored weights": _program(restore=f"ema = {_TENSORS}"),
    "no average": _program(move="pass"),
}
