"""The places at which a program compares what its model gave with what it should have given.

Those are the losses of torch, and, written by hand, a difference or an equality of which one side
is what a model has just put out.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils import _python_dispatch

from . import forwards, moments, nested
from .change_report import ChangeReport
from .plain_losses import BINARY, CLASSES, KINDS, PROBABILITIES, VALUES
from .replacement import leave_scripts_alone


class LossCall:
    """One comparison of outputs with targets."""

    def __init__(
        self, kind: str, given: torch.Tensor, target: torch.Tensor, name: str, *, is_share: bool
    ) -> None:
        self.kind = kind
        self.given = given
        self.target = target
        self.name = name  # of the loss of torch; "difference", or "equality"
        self.is_share = is_share  # probabilities, where the kind takes scores as well
        self.has_gradient = torch.is_grad_enabled() and (given.requires_grad or last.has_gradient)


class ModelCall:
    """The last call of a model: what it was given, and what it gave."""

    def __init__(self) -> None:
        self.model: Any = lambda: None  # a weak reference
        self.args: Any = ()
        self.output: torch.Tensor | None = None
        self.is_training = False
        self.has_gradient = False


last = ModelCall()
_listeners: list[Callable[[LossCall], Any]] = []
_inside = [False]


def on_loss(report: ChangeReport, listener: Callable[[LossCall], Any]) -> None:
    """Call a listener with each comparison, before it is made."""
    if not _listeners:
        _install()
    _listeners.append(report.guard(listener))


@contextmanager
def unseen() -> Iterator[None]:
    """Hide operations of ours from whoever records those of the program."""
    was, _inside[0] = _inside[0], True
    try:
        with _python_dispatch._disable_current_modes():
            yield
    finally:
        _inside[0] = was


def is_output(value: Any) -> bool:
    """Tell whether a tensor is the last output of a model, or a view of it."""
    output = last.output
    if not isinstance(value, torch.Tensor) or output is None or not output.numel():
        return False
    return bool(value.numel() == output.numel() and value.data_ptr() == output.data_ptr())


def _install() -> None:
    own = ChangeReport()
    forwards.on_begin(own, _begins, is_first=True)
    forwards.on_end(own, _ends)
    for name, kind in KINDS.items():
        _listen(name, kind)
    for name in ("__sub__", "__rsub__", "sub"):
        _watch(name, _difference)
    for name in ("__eq__", "eq"):
        _watch(name, _equality)


def _begins(model: nn.Module, args: Any) -> None:
    if forwards.is_aside():
        return
    last.model, last.args, last.output = weakref.ref(model), args, None
    last.is_training = model.training


def _ends(model: nn.Module, args: Any, output: Any) -> None:
    if forwards.is_aside():
        return
    given = getattr(output, "logits", None)
    if not isinstance(given, torch.Tensor):
        given = next(nested.tensors(output), None)
    last.output = given.detach() if isinstance(given, torch.Tensor) else None
    last.has_gradient = isinstance(given, torch.Tensor) and given.requires_grad


def _listen(name: str, kind: str) -> None:
    original = getattr(functional, name)

    @functools.wraps(original)
    def listening(*args: Any, **kwargs: Any) -> Any:
        if _inside[0] or torch.compiler.is_compiling() or moments.is_quiet():
            return original(*args, **kwargs)
        given = args[0] if args else kwargs.get("input")
        target = args[1] if len(args) > 1 else kwargs.get("target")
        _inside[0] = True
        try:
            with unseen():
                _tell(kind, given, target, name, is_share=name in PROBABILITIES)
            return original(*args, **kwargs)
        finally:
            _inside[0] = False

    leave_scripts_alone(listening, original)
    setattr(functional, name, listening)


def _tell(kind: str, given: Any, target: Any, name: str, *, is_share: bool = False) -> None:
    if not isinstance(given, torch.Tensor) or not isinstance(target, torch.Tensor):
        return
    call = LossCall(kind, given, target, name, is_share=is_share)
    for listener in _listeners:
        listener(call)


def _watch(name: str, look: Callable[[Any, Any], Any]) -> None:
    tensor: Any = torch.Tensor
    original = getattr(tensor, name)

    @functools.wraps(original)
    def watching(left: Any, right: Any, *args: Any, **kwargs: Any) -> Any:
        is_plain = type(right) in (torch.Tensor, nn.Parameter) and last.output is not None
        if is_plain and not (_inside[0] or torch.compiler.is_compiling() or _is_recorder()):
            with unseen():
                look(left, right)
        return original(left, right, *args, **kwargs)

    setattr(tensor, name, watching)


def _is_recorder() -> bool:
    """Tell whether the recorder compares what it has seen."""
    name = sys._getframe(2).f_globals.get("__name__", "")
    return str(name).startswith("traindx_recorder")


def _difference(left: Any, right: Any) -> None:
    """A difference between outputs and values of the same number is that of a regression."""
    if left.numel() != right.numel() or moments.is_quiet():
        return
    for given, target in ((left, right), (right, left)):
        if is_output(given) and target.is_floating_point() and not target.requires_grad:
            _tell(VALUES, given, target, "difference")
            return


def _equality(left: Any, right: Any) -> None:
    """An equality of predicted and true classes tells what the true ones are."""
    output = last.output
    if output is None or moments.is_quiet() or left.shape != right.shape:
        return
    if output.ndim == 2 and output.shape[1] > 1 and left.numel() == output.shape[0]:
        _tell_equal(output.argmax(1), left, right, CLASSES, output)
    elif left.numel() == output.numel():
        for border in (0.0, 0.5):
            if _tell_equal((output > border).reshape(-1), left, right, BINARY, output):
                return


def _tell_equal(
    predicted: torch.Tensor, left: Any, right: Any, kind: str, output: torch.Tensor
) -> bool:
    for given, target in ((left, right), (right, left)):
        flat = given.detach().reshape(-1)
        is_same = len(flat) == len(predicted) and bool((flat == predicted.to(flat.dtype)).all())
        if is_same and (kind == CLASSES or bool(((target == 0) | (target == 1)).all())):
            is_share = kind == BINARY and bool(((output >= 0) & (output <= 1)).all())
            _tell(kind, output, target, "equality", is_share=is_share)
            return True
    return False
