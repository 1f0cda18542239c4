from traindx.analysis.program.training.claims import decorate, finding, imports, program_of
from traindx.analysis.program.training.needless_graphs import needless_scores
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("evaluation-with-grad",))
def check(run: Run) -> Findings:
    """A function runs a model only to read off a number, and gradients are recorded.

    ## What it detects
    A function that learns nothing and runs a model while autograd records, and from whose outputs
    nothing is made but numbers without a history (`.item()`, `argmax`, comparisons, NumPy); or that
    runs a trained model in evaluation mode, in a loop, for outputs that no loss is computed from.
    In a program that trains and whose calls are in sight from its start.

    ## Why it matters
    The forward pass over all held-out data keeps every activation for a backward pass that never
    comes.

    ## What to do
    Put `@torch.no_grad()` on the function.

    ## When it is wrong
    Functions that ask for gradients (attacks, saliency) and those that learn are left alone, and so
    are outputs that are handed on as they are.
    """
    for story in program_of(run).stories:
        for forward in needless_scores(story):
            is_torch = imports(forward, "torch")
            yield finding(
                f"The function {forward.event.function_name} runs {forward.text} while gradients "
                "are recorded",
                (forward, "a graph is built here, and never used"),
                patch=decorate(forward, "@torch.no_grad()") if is_torch else None,
                is_symptom=False,
            )


_TRAINING = """
for epoch in range(3):
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    print({call})
"""
_MODEL = """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_SCORE = """
{decorator}
def {name}():
    {mode}
    {before}
    output = model(x_test)
    return {returned}
"""
_program = template(
    _MODEL + _SCORE + _TRAINING,
    returned="(output.argmax(1) == y).float().mean().item()",
    before="x_test = x[split:]",
    mode="model.eval()",
    decorator="",
    name="score",
    call="score()",
)
_NUMBER = "nn.functional.cross_entropy(output, y).item()"

FIRES = {
    "a function that scores": _program(),
    "a function of a number, in whatever mode": _program(_NUMBER, mode="pass"),
}

_PENALTY = """
class Smoothed(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.size = size
    def forward(self, x, y):
        return self.criterion(x, y)

def penalty(x, crit):
    return crit(torch.FloatTensor([[x, 1 - x]]).log(), torch.ones(1, 2)).item()
"""
_PENALTIES = "[penalty(i, Smoothed(2)) for i in range(1, 9)]"

SILENT = {
    "near miss: a loss of plain numbers, which has no weights": template(
        _MODEL + _PENALTY + _TRAINING
    )(call=_PENALTIES),
    "near miss: an old torch records nothing of what is volatile": _program(
        before="x_test = torch.autograd.Variable(x[split:], volatile=True)"
    ),
    "near miss: the loss itself is given back": _program("nn.functional.cross_entropy(output, y)"),
    "near miss: a size is asked for": _program("output.shape[1]"),
    "near miss: somebody else learns from it": _program(_NUMBER, "engine.learn(model(x_test))"),
    "decorated": _program(decorator="@torch.no_grad()"),
    "near miss: outputs are handed on": _program("output"),
    "near miss: an attack needs gradients": _program(before="x_test.requires_grad = True"),
}
