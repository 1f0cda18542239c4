"""Puts models into training mode where they are trained, into evaluation mode without gradients.

A call trains if gradients came back through what it gave, the last time it was made at this place
with this data; the first call at each place is therefore left as it is. Parts in evaluation mode
inside a model in training mode are meant to be so (frozen statistics), and so are frozen parts.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from . import data_loaders, forwards
from .change_report import ChangeReport
from .nested import tensors
from .replacement import replace

Key = Any
_SENSITIVE = (
    nn.modules.dropout._DropoutNd,
    nn.modules.batchnorm._BatchNorm,
    nn.modules.instancenorm._InstanceNorm,
    nn.RNNBase,
    nn.MultiheadAttention,
)


class Modes:
    """What was changed, and where models are trained."""

    def __init__(self, report: ChangeReport) -> None:
        self.report = report
        self.training: set[Key] = set()  # places whose calls are trained through
        self._changed: weakref.WeakKeyDictionary[nn.Module, bool] = weakref.WeakKeyDictionary()
        self._keys: list[Key] = []

    def begin(self, model: nn.Module, args: Any) -> None:
        """Set the mode that a call ought to be made in."""
        self.restore(model)
        key = (_place(), data_loaders.current_data(), id(model))
        self._keys.append(key)
        if not torch.is_grad_enabled():
            self._set(model, [m for m in model.modules() if m.training], is_training=False)
        elif key in self.training and not model.training:
            self._set(model, _unfrozen(model), is_training=True)
        elif model.training and any(not m.training for m in _sensitive(model)):
            self.report.note("parts of a model in training mode are in evaluation mode; left alone")

    def end(self, model: nn.Module, args: Any, output: Any) -> None:
        """Find out whether gradients come back, and undo what only held for the call."""
        key = self._keys.pop() if self._keys else None
        if not torch.is_grad_enabled():
            self.restore(model)
        for tensor in tensors(output):
            if tensor.requires_grad and key not in self.training:
                tensor.register_hook(lambda gradient: self.training.add(key))

    def restore(self, model: nn.Module) -> None:
        """Put back the modes that the program has not set itself since."""
        for module in model.modules() if self._changed else ():
            before = self._changed.pop(module, None)
            if before is not None:
                module.training = before

    def forget(self, model: nn.Module) -> None:
        """Leave a model as the program has just set it."""
        for module in model.modules() if self._changed else ():
            self._changed.pop(module, None)

    def _set(self, model: nn.Module, modules: list[nn.Module], *, is_training: bool) -> None:
        modules = [m for m in modules if m.training != is_training]
        if any(isinstance(m, _SENSITIVE) or _asks_for_mode(m) for m in modules):
            self.report.count()
        for module in modules:
            self._changed[module] = module.training
            module.training = is_training


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Set the mode of each call of a model."""
    modes = Modes(report)

    def forgetting(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def train(self: nn.Module, mode: bool = True) -> Any:
            modes.forget(self)
            return original(self, mode)

        return train

    replace(nn.Module, "train", forgetting)
    forwards.on_begin(report, modes.begin)
    forwards.on_end(report, modes.end)
    data_loaders.watch()


def _sensitive(model: nn.Module) -> list[nn.Module]:
    return [m for m in model.modules() if isinstance(m, _SENSITIVE)]


def _asks_for_mode(module: nn.Module) -> bool:
    code = getattr(type(module).forward, "__code__", None)
    is_own = not type(module).__module__.startswith("torch.")
    return is_own and code is not None and "training" in code.co_names


def _unfrozen(model: nn.Module) -> list[nn.Module]:
    """Return the parts of a model that are not below one whose weights are all frozen."""
    frozen: set[int] = set()
    for module in model.modules():
        parameters = list(module.parameters())
        if parameters and not any(p.requires_grad for p in parameters):
            frozen |= {id(m) for m in module.modules()}
    return [m for m in model.modules() if id(m) not in frozen]


def _place() -> tuple[str, int]:
    """Return the line outside of torch that makes the call."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith(("torch.", "traindx_")) and name != "torch":
            break
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
