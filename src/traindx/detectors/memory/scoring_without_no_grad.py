"""A function that scores a model records graphs that nobody needs."""

from traindx.analysis.program.execution.values import Answer, Result, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, decorate, finding
from traindx.analysis.program.training.gradients import (
    ends_in_numbers,
    has_history,
    is_frozen,
    wants_gradients,
)
from traindx.analysis.program.training.graphs import feeds_backward
from traindx.analysis.program.training.layers import is_weightless
from traindx.analysis.program.training.ownership import optimizers_of, owns
from traindx.analysis.program.training.phases import LEARNS, evaluations
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
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
        if not story.does(Do.BACKWARD):
            continue
        known = {e.forward.event.node for e in evaluations(story) if e.loop is not None}
        seen: set[object] = set()
        for function, passes in _functions(story).items():
            first = passes[0]
            if first.event.node in known or not all(_is_wasted(story, d) for d in passes):
                continue
            inside = [e for e in story.events if e.function is function]
            if first.event.node not in seen and not wants_gradients(inside):
                seen.add(first.event.node)
                yield _finding(first)


def _functions(story: Story) -> dict[object, list[Deed]]:
    """The functions that the program calls and that learn nothing, with their forward passes."""
    learning = {d.event.function for d in story.does(*LEARNS, Do.ZERO_GRAD)}
    found: dict[object, list[Deed]] = {}
    for deed in story.does(Do.FORWARD):
        function = deed.event.function
        is_called = function is not None and function is not story.execution.function
        if is_called and function not in learning and not deed.event.within:
            found.setdefault(function, []).append(deed)
    return found


def _is_wasted(story: Story, forward: Deed) -> bool:
    """Tell whether a pass builds a graph of which nothing but numbers is kept."""
    event, result = forward.event, forward.event.result
    if event.gradients is not Answer.YES or result is None or forward.subject is None:
        return False
    if is_weightless(forward.subject) and has_history(result) is not Answer.YES:
        return False
    if isinstance(result, Result) and result.gradients is not Answer.YES:
        return False
    is_left = ends_in_numbers(story, result) or _is_evaluated(story, forward, result)
    return is_left and not is_frozen(story, forward.subject)


def _is_evaluated(story: Story, forward: Deed, result: Value) -> bool:
    """Tell whether a trained model runs in evaluation mode, in a loop, and no loss takes it up."""
    event, model = forward.event, forward.subject
    if event.is_training is not Answer.NO or not event.turns or model is None:
        return False
    if event.module.function_of(event.loops[-1].site.node) is not event.function:
        return False
    is_trained = any(owns(o, model) is Answer.YES for o in optimizers_of(story))
    return is_trained and not feeds_backward(story, result)


def _finding(forward: Deed) -> Finding:
    is_torch = forward.event.module.aliases.get("torch") == "torch"
    name = forward.event.function_name
    return finding(
        f"The function {name} runs {forward.text} while gradients are recorded",
        "evaluation-with-grad",
        forward,
        cite(forward, "a graph is built here, and never used"),
        patch=decorate(forward, "@torch.no_grad()") if is_torch else None,
    )


_PROGRAM = """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{decorator}
def {name}():
    model.eval()
    {before}
    output = model(x_test)
    model.train()
    return {returned}

for epoch in range(3):
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    print({name}())
"""


def _program(
    decorator: str = "",
    name: str = "accuracy",
    before: str = "x_test = x[split:]",
    returned: str = "(output.argmax(1) == y).float().mean().item()",
) -> Run:
    text = _PROGRAM.format(decorator=decorator, name=name, before=before, returned=returned)
    return make_run(sources={"train.py": text})


_NUMBER = "nn.functional.cross_entropy(output, y).item()"

FIRES = {
    "a function that scores": _program(),
    "a function of a number, in whatever mode": make_run(
        sources={
            "train.py": _PROGRAM.format(
                decorator="", name="held_out", before="x_test = x[split:]", returned=_NUMBER
            )
            .replace("    model.eval()\n", "")
            .replace("    model.train()\n", "")
        }
    ),
}

_LOSS_ALONE = """
import torch
from torch import nn

class Smoothed(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.size = size
    def forward(self, x, y):
        return self.criterion(x, y)

def penalty(x, crit):
    return crit(torch.FloatTensor([[x, 1 - x]]).log(), torch.ones(1, 2)).item()

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
print([penalty(x, Smoothed(2)) for x in range(1, 9)])
"""

SILENT = {
    "near miss: a loss of plain numbers, which has no weights": make_run(
        sources={"train.py": _LOSS_ALONE}
    ),
    "near miss: an old torch records nothing of what is volatile": _program(
        before="x_test = torch.autograd.Variable(x[split:], volatile=True)"
    ),
    "near miss: the loss itself is given back": _program(
        name="held_out", returned="nn.functional.cross_entropy(output, y)"
    ),
    "near miss: a size is asked for": _program(name="width", returned="output.shape[1]"),
    "near miss: somebody else learns from it": _program(
        name="held_out", before="engine.learn(model(x_test))", returned=_NUMBER
    ),
    "decorated": _program("@torch.no_grad()"),
    "near miss: outputs are handed on": _program(name="features", returned="output"),
    "near miss: an attack needs gradients": _program(before="x_test.requires_grad = True"),
}
