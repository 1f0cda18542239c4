"""The autograd graph below a loss: what was computed, from what, and the values it kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from .summaries import local_part

LIMIT = 20000  # nodes

# operations that pass values on in another arrangement
ARRANGING = frozenset(
    {"view", "reshape", "unsafe_view", "transpose", "permute", "squeeze", "unsqueeze", "slice",
     "select", "clone", "to_copy", "expand", "alias", "t", "as_strided", "cat", "index", "flatten",
     "split", "unbind", "reshape_alias", "to"}
)  # fmt: skip
_TAIL = re.compile(r"Backward\d*$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Node:
    """One operation of the graph."""

    __slots__ = ("fn", "inputs", "name", "slots")

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self.name = operation(fn.name())
        self.inputs: list[Node] = []
        self.slots: list[int] = []  # which output of the input is used

    @property
    def variable(self) -> torch.Tensor | None:
        """Return the parameter that a leaf of the graph accumulates into."""
        found = getattr(self.fn, "variable", None)
        return found if isinstance(found, torch.Tensor) else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of what the operation gave, () where that is not known."""
        return self.shape_of(0)

    def shape_of(self, slot: int) -> tuple[int, ...]:
        try:
            return tuple(int(n) for n in self.fn._input_metadata[slot].shape)
        except Exception:  # a custom function without metadata
            return ()

    def saved(self, key: str) -> torch.Tensor | None:
        """Return a tensor that was kept for backward, unless reading it would run user code."""
        try:
            raw = getattr(self.fn, f"_raw_saved_{key}", None)
            if raw is None or getattr(raw, "unpack_hook", None) is not None:
                return None
            found = getattr(self.fn, f"_saved_{key}")
        except Exception:  # freed, or changed in place
            return None
        return found if isinstance(found, torch.Tensor) and local_part(found) is not None else None

    def setting(self, key: str) -> Any:
        """Return a number or shape that was kept for backward."""
        return getattr(self.fn, f"_saved_{key}", None)


def operation(name: str) -> str:
    """Return the operation that a node of the graph undoes: LogSoftmaxBackward0 is log_softmax."""
    name = name.rsplit("::", 1)[-1]
    return _CAMEL.sub("_", _TAIL.sub("", name)).lower().replace("2_d", "2d")


def walk(loss: torch.Tensor, limit: int = LIMIT) -> list[Node]:
    """Return the nodes below a tensor, nearest first."""
    if loss.grad_fn is None:
        return []
    root = Node(loss.grad_fn)
    known = {id(loss.grad_fn): root}
    order = [root]
    for node in order:
        for fn, slot in node.fn.next_functions:
            if fn is None:
                continue
            below = known.get(id(fn))
            if below is None:
                if len(order) >= limit:
                    continue
                below = known[id(fn)] = Node(fn)
                order.append(below)
            node.inputs.append(below)
            node.slots.append(slot)
    return order


def producer(node: Node) -> Node | None:
    """Return the operation that computed what a node was given, behind rearrangements."""
    current = node.inputs[0] if node.inputs else None
    for _ in range(20):
        if current is None or current.name not in ARRANGING:
            return current
        current = current.inputs[0] if current.inputs else None
    return current


def parameters_below(node: Node, depth: int = 4) -> Iterator[torch.Tensor]:
    """Yield the parameters that an operation uses directly, nearest first."""
    layer = [node]
    seen: set[int] = set()
    for _ in range(depth):
        below: list[Node] = []
        for item in layer:
            for inner in item.inputs:
                variable = inner.variable
                if variable is not None:
                    yield variable
                elif id(inner) not in seen:
                    seen.add(id(inner))
                    below.append(inner)
        layer = below
