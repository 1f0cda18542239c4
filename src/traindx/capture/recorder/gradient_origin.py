"""Finds the operation whose gradient is the first that is not finite, in a replayed step."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import graph, places
from .caught import summary_of
from .reasons import explain_gradient
from .replay_mode import has_bad

_LINE = re.compile(r'\s*File "(.*)", line (\d+), in (.*)')
_SAVED = "_raw_saved_"


class Trail:
    """Which module each operation of a forward pass belonged to, by the order of operations."""

    def __init__(self) -> None:
        self._open: list[tuple[Any, int]] = []
        self._spans: list[tuple[int, int, Any]] = []

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        modules = torch.nn.modules.module
        handles = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, module: Any, args: Any) -> None:
        self._open.append((module, _order()))

    def _leave(self, module: Any, args: Any, output: Any) -> None:
        if self._open and self._open[-1][0] is module:
            self._spans.append((self._open.pop()[1], _order(), module))

    def module_of(self, order: int) -> Any:
        """Return the innermost module during which a node was made."""
        inside = [span for span in self._spans if span[0] < order < span[1]]
        return min(inside, key=lambda span: span[1] - span[0])[2] if inside else None


def _order() -> int:
    """Return the number that autograd would give to the next node, by making one."""
    with torch.enable_grad():
        return int(torch.zeros((), requires_grad=True, device="cpu").neg().grad_fn._sequence_nr())


class NonFiniteGradient:
    """A node of the graph whose gradient came out non-finite though what came in was finite."""

    def __init__(self, node: graph.Node) -> None:
        saved = _saved(node)
        self.op = node.name
        self.order = int(node.fn._sequence_nr())
        self.place = _place(node.fn)
        self.inputs = [summary_of(tensor, key) for key, tensor in list(saved.items())[:4]]
        self.why = explain_gradient(node.name, saved)


def backtrace(
    make_loss: Callable[[], Any], parameters: list[Any]
) -> tuple[NonFiniteGradient | None, bool, Trail]:
    """Replay a step and its gradient; tell the culprit, and whether the gradient was bad again."""
    trail = Trail()
    with torch.enable_grad(), torch.autograd.set_detect_anomaly(True, check_nan=False):
        with trail.recorded():
            loss = make_loss()
        found: list[NonFiniteGradient] = []
        handles = [_hook(node, found) for node in graph.walk(loss)]
        try:
            wanted = [p for p in parameters if p.requires_grad]
            with torch.autograd.set_detect_anomaly(False):
                grads = torch.autograd.grad(loss.sum(), wanted, allow_unused=True)
        finally:
            for handle in handles:
                handle.remove()
    is_bad = any(grad is not None and has_bad(grad) for grad in grads)
    return (found[0] if found else None), is_bad, trail


def _hook(node: graph.Node, found: list[NonFiniteGradient]) -> Any:
    def look(going: Any, came: Any) -> None:
        if found or any(has_bad(g) for g in came if g is not None):
            return
        if any(has_bad(g) for g in going if g is not None):
            found.append(NonFiniteGradient(node))

    return node.fn.register_hook(look)


def _saved(node: graph.Node) -> dict[str, Any]:
    keys = [name[len(_SAVED) :] for name in dir(node.fn) if name.startswith(_SAVED)]
    found = {key: node.saved(key) for key in keys}
    return {key: tensor for key, tensor in found.items() if tensor is not None}


def _place(fn: Any) -> dict[str, Any] | None:
    """Return the user's line that made a node, which anomaly mode wrote down."""
    for entry in reversed(fn.metadata.get("traceback_") or []):
        match = _LINE.match(entry)
        if match and places.is_user_file(match.group(1)):
            code = entry.split("\n")[1].strip() if "\n" in entry else ""
            return {
                "file": match.group(1),
                "line": int(match.group(2)),
                "function": match.group(3),
                "code": code,
            }
    return None
