"""The class is picked along the wrong dimension."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Part, Value, constant
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.operations import Operation, operation_of
from traindx.analysis.program.training.phases import source_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

PICKS = ("argmax", "max", "topk")
TURNS = frozenset({"t", "transpose", "permute", "adjoint"})
SAME_ROWS = frozenset({"softmax", "log_softmax", "sigmoid", "detach", "cpu", "float", "exp"})


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
    seen: set[object] = set()
    for story in program_of(run).stories:
        outputs = _outputs(story)
        for event in story.events:
            taken = _picked(event)
            if taken is None or event.node in seen:
                continue
            claim = _wrong(story, event, *taken, outputs)
            if claim:
                seen.add(event.node)
                yield finding(
                    claim,
                    "metric-bug",
                    event,
                    cite(event, f"`{source_text(event)}`"),
                    is_symptom=True,
                )


def _picked(event: ProgramEvent) -> tuple[Value, object] | None:
    """What the largest is picked of, and along which dimension."""
    return None if event.is_own else _of(operation_of(event.result))


def _of(operation: Operation | None) -> tuple[Value, object] | None:
    if operation is None or operation.name not in PICKS[:2] or not operation.operands:
        return None
    given = [*operation.operands[1:2], *(operation.settings.get(k) for k in ("dim", "axis"))]
    dims = [constant(v) for v in given if v is not None]
    return (operation.operands[0], dims[0]) if dims else None


def _outputs(story: Story) -> set[int]:
    """The outputs of models within loops over batches."""
    found: set[int] = set()
    for forward in story.does(Do.FORWARD):
        over = forward.event.loops[-1].over if forward.event.loops else None
        if over is None or forward.event.within:
            continue
        if story.kind_of(source_of(over)).kind is Kind.LOADER:
            found.add(id(forward.event.result))
    return found


def _wrong(story: Story, event: ProgramEvent, given: Value, dim: object, outputs: set[int]) -> str:
    """Say what is wrong with the dimension of an argmax; empty where nothing is."""
    source = _unscaled(given)
    if dim == 0 and not isinstance(dim, bool):
        is_wrong = id(source) in outputs and not _is_of_pairs(story, source)
        if is_wrong and _is_compared(story, event):
            return "The argmax runs over the batch, not over classes"
    elif dim == -1 or (dim == 1 and not _may_have_rows(story, event, source)):
        layer = operation_of(source)
        if layer is not None and layer.name == "linear":
            units = layer.settings.get("out_features")
            if units is not None and constant(units) == 1:
                return "An argmax over a single output is always 0"
    return ""


def _unscaled(value: Value) -> Value:
    """Return the output that scores were made from without changing their order."""
    operation = operation_of(value)
    while operation is not None and operation.name in SAME_ROWS and operation.operands:
        value = operation.operands[0]
        operation = operation_of(value)
    return value


def _is_of_pairs(story: Story, output: Value) -> bool:
    """Tell whether an output is a matrix of similarities: it is also read the other way."""
    for user in story.made_from(output):
        operation = operation_of(user)
        if isinstance(user, Part) and user.key in ("T", "mT", "H"):
            return True
        if operation is not None and operation.name in TURNS:
            return True
        other = _of(operation)
        if other is not None and other[1] in (1, -1):
            return True
    return False


def _may_have_rows(story: Story, event: ProgramEvent, output: Value) -> bool:
    """Tell whether a unit per row is known or likely: scores of the members of a set.

    Within a model's `forward` inputs may have any number of dimensions; elsewhere a cross entropy
    over one unit, or its last dimension being dropped, says that there is another before it.
    """
    if event.within:
        return True
    uses = [o for u in story.made_from(output) if (o := operation_of(u)) is not None]
    return any(
        o.name == "cross_entropy" or (o.name == "squeeze" and len(o.operands) > 1) for o in uses
    )


def _is_compared(story: Story, event: ProgramEvent) -> bool:
    """Tell whether what is picked is compared with something: at once, or the second of two."""
    if event.result is None:
        return False
    pending = [event.result, *story.made_from(event.result)]
    users = [u for v in pending for u in story.made_from(v)]
    return any((o := operation_of(u)) is not None and o.name == "eq" for u in users)


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, {units})
{before}
for epoch in range(3):
    {top}
    for data, target in val_loader:
        output = model(data)
        pred = {pred}
        correct += {count}
    print(100 * correct / len({over}))
"""


def _program(
    pred: str = "output.argmax(1)",
    top: str = "correct = 0",
    before: str = "",
    units: int = 3,
    over: str = "val_loader.dataset",
    count: str = "(pred == target).sum().item()",
) -> Run:
    text = _PROGRAM.format(pred=pred, top=top, before=before, units=units, over=over, count=count)
    return make_run(sources={"train.py": text})


_BAG = """
import torch
from torch import nn

class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(64, 1)

    def forward(self, bag):
        scores = self.score(bag)
        return scores.argmax(dim={dim})
"""

FIRES = {
    "one unit, whatever the rows": make_run(sources={"model.py": _BAG.format(dim=-1)}),
    "over the batch": _program("output.argmax(dim=0)"),
    "the second of a maximum, over the batch": _program("torch.max(output, 0)[1]"),
    "over one logit": _program("torch.argmax(output, dim=1)", units=1),
}

SILENT = {
    "over classes": _program(),
    "near miss: the best of a set": make_run(sources={"model.py": _BAG.format(dim=1)}),
    "near miss: both ways over similarities": _program(
        "output.argmax(dim=0)", count="(pred == target).sum() + (output.argmax(1) == target).sum()"
    ),
    "near miss: similarities that are turned": _program(
        "output.argmax(dim=0)\n        back = output.T.argmax(dim=0)"
    ),
    "near miss: one example of the batch under its name": _program(
        "0\n        output = output[0]\n        pred = output.argmax(0)"
    ),
    "near miss: one sample": _program("output[0].argmax(0)"),
}
