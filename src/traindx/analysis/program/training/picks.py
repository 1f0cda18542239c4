"""Classes that are picked as the largest score, and along which dimension."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Part, Value, constant
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.operations import Operation, operation_of
from traindx.analysis.program.training.phases import source_of
from traindx.analysis.program.training.program import Story

PICKS = ("argmax", "max", "topk")
TURNS = frozenset({"t", "transpose", "permute", "adjoint"})
SAME_ROWS = frozenset({"softmax", "log_softmax", "sigmoid", "detach", "cpu", "float", "exp"})


def wrong_picks(story: Story) -> Iterator[tuple[ProgramEvent, str]]:
    """Yield where the largest is picked along a wrong dimension, with what is wrong."""
    outputs = _outputs(story)
    for event in story.events:
        taken = _picked(event)
        claim = "" if taken is None else _wrong(story, event, *taken, outputs)
        if claim:
            yield event, claim


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
