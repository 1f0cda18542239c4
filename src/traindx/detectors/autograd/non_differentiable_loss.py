"""A loss is computed on values that have no gradient."""

from collections.abc import Sequence

from traindx.analysis.program.execution.values import Answer, Part, Result, Value
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.gradients import (
    Cut,
    cut_of,
    cuts_before,
    has_history,
    terms_of,
)
from traindx.analysis.program.training.operations import operation_name
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.severance import lost_history
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


@detector(needs=("source",), suggests=("non-differentiable-operation",))
def check(run: Run) -> Findings:
    """The training loss goes through an operation without a gradient.

    ## What it detects
    `backward` of a loss, or a sum with a term, whose every path back to the model goes through an
    argmax, a rounding, a comparison, an integer division or a cast to integers, also where a single
    parameter behind it still learns.

    ## Why it matters
    Such an operation is flat: its gradient is zero or does not exist. Backward raises, or the loss
    does not depend on the weights and nothing is learnt.

    ## What to do
    Compute the loss on the scores (logits, probabilities); use argmax and thresholds for metrics.

    ## When it is wrong
    A straight-through estimator adds the rounded value to a differentiable one and is left alone,
    as are losses that no backward is called on. A loss that is given its target first, as
    `mse_loss(target, output)`, has its gradient through the other argument.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for backward in story.does(Do.BACKWARD):
            if backward.event.node in seen or backward.subject is None:
                continue
            terms = [t for t in terms_of(backward.subject) if t is not backward.subject]
            lost = [lost_history(story, backward), *map(_lost, terms)]
            found = next((f for cuts in lost if (f := _flat(cuts))), None)
            if found is None:
                continue
            seen.add(backward.event.node)
            how = _name(found)
            place = found if found.site is not None else backward
            yield finding(
                f"The loss is computed on the result of {how}, which has no gradient",
                "non-differentiable-operation",
                place,
                cite(place, f"{how} here"),
                cite(backward, "backward runs through it here"),
                is_symptom=True,
            )


def _lost(term: Value) -> list[tuple[Cut, Value]]:
    cuts = cuts_before(term) if has_history(term) is Answer.NO else []
    return cuts if all(how is Cut.FLAT for how, _ in cuts) else []


def _flat(cuts: Sequence[tuple[Cut, Value]]) -> Value | None:
    """The operation without a slope that takes the gradient from a loss, where it has none left."""
    found = next((v for how, v in cuts if how is Cut.FLAT), None)
    while found is not None and found.inputs:  # an argmax that is divided is still the argmax
        below = next(iter(same_numbers(found.inputs[0])))
        if cut_of(below) is not Cut.FLAT:
            break
        found = below
    return found


def _name(value: Value) -> str:
    maker = value.maker if isinstance(value, Result) else ""
    name = operation_name(maker) or (str(value.key) if isinstance(value, Part) else "")
    return "a comparison" if name in COMPARISONS else name


_LOOP = """
import torch
from torch import nn

criterion = nn.MSELoss()
net = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    output = model(data)
    {compute}
    loss = criterion({given}, {wanted})
    loss.backward()
    optimizer.step()
"""


def _loop(given: str, compute: str = "pass", wanted: str = "target") -> Run:
    text = _LOOP.format(given=given, compute=compute, wanted=wanted)
    return make_run(sources={"train.py": text})


_COUNTS = """
import torch
from torch import nn

class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 1)
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        rate = nn.functional.softplus(self.net(x)).squeeze(-1)
        return {output}

model = Counts()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""


FIRES = {
    "only a gain learns": make_run(
        sources={"train.py": _COUNTS.format(output="self.gain * torch.round(rate)")}
    ),
    "argmax": _loop("pred.float()", "pred = torch.argmax(output, dim=1)"),
    "a threshold": _loop("pred", "pred = (output > 0.5).float()"),
    "round, of a call": _loop("given", "given = torch.round(net(data))"),
    "round": _loop("torch.round(output)"),
    "round, the target in its shape": _loop("output.round()", wanted="target.view_as(output)"),
}

SILENT = {
    "near miss: straight through, with a gain": make_run(
        sources={
            "train.py": _COUNTS.format(
                output="self.gain * (rate + (torch.round(rate) - rate).detach())"
            )
        }
    ),
    "scores": _loop("output"),
    "near miss: straight through": _loop(
        "pred", "pred = output + (output.round() - output).detach()"
    ),
    "near miss: the target first": _loop("(data > 0.5).float()", wanted="output"),
    "near miss: a target of the batch first": _loop(
        "bits", "data = data.flatten(1); bits = (data > 0.5).float()", "decode(output)"
    ),
    "near miss: only in another branch": _loop(
        "output", "if hard:\n        output = output.round()"
    ),
    "near miss: argmax for a metric": _loop("output", "correct = output.argmax(1) == target"),
}
