"""Which part of a graph a backward pass runs through: all of it, or the way to some tensors."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.library import LISTINGS, modules_in
from traindx.analysis.program.execution.values import (
    Choice,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.gradients import history

HANDED_ON = frozenset({"builtins.next", "builtins.list", "builtins.tuple", "builtins.filter"})
KEEPS = {Do.BACKWARD: 1, Do.GRAD: 3}  # where `retain_graph` and `create_graph` stand


def keeps_graph(backward: Deed) -> bool:
    """Tell whether a backward pass may leave the graph as it is."""
    event, first = backward.event, KEEPS[backward.do]
    named = [event.kwargs.get(name) for name in ("retain_graph", "create_graph", "**")]
    given = [v for v in (*named, *event.args[first : first + 2]) if v is not None]
    return any(not isinstance(v, Known) or constant(v) not in (False, None) for v in given)


class GradientPath:
    """The way that a backward pass takes: `autograd.grad` runs only what leads to its inputs."""

    def __init__(self, backward: Deed) -> None:
        event = backward.event
        wanted = event.argument("inputs", 1) if backward.do is Do.GRAD else None
        self._is_whole = backward.do is Do.BACKWARD
        self._ends = set() if wanted is None else {id(v) for v in _ends(wanted)}

    def passes(self, value: Value) -> bool:
        """Tell whether the pass surely runs through the operation that made a value."""
        if self._is_whole:
            return True
        return any(self._ends_at(v, value) for v in history(value)) if self._ends else False

    def _ends_at(self, value: Value, above: Value) -> bool:
        """Tell whether an end of the way is a value below another, or a layer that ran there."""
        called = value.receiver if isinstance(value, Result) and value.maker == "()" else None
        is_tensor = id(value) in self._ends and value is not above
        return is_tensor or (called is not None and id(called) in self._ends)


def _ends(wanted: Value, most: int = 200) -> Iterator[Value]:
    """Yield the tensors that gradients are asked of, and the layers whose weights they are."""
    pending = [wanted]
    while pending and most:
        most -= 1
        value = pending.pop()
        if isinstance(value, (Items, Choice)):
            pending.extend(value.inputs)
        elif isinstance(value, Result) and value.maker in HANDED_ON:
            pending.extend(value.args)
        elif isinstance(value, Result) and value.maker in LISTINGS and value.receiver is not None:
            yield from modules_in(value.receiver)
        else:
            yield value
            if isinstance(value, Part) and value.key in ("weight", "bias"):
                yield value.of
