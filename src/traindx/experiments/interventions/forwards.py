"""The calls of models that the program makes itself, not those that a model makes inside."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from . import moments
from .change_report import ChangeReport

_begins: list[Callable[[nn.Module, Any], Any]] = []
_ends: list[Callable[[nn.Module, Any, Any], Any]] = []
_local = threading.local()


def on_begin(report: ChangeReport, listener: Callable[[nn.Module, Any], Any]) -> None:
    """Call a listener with the module and its positional arguments; it may return new ones."""
    _install()
    _begins.append(report.guard(listener))


def on_end(report: ChangeReport, listener: Callable[[nn.Module, Any, Any], Any]) -> None:
    """Call a listener with the module, its arguments and what it gave."""
    _install()
    _ends.append(report.guard(listener))


def is_model(module: nn.Module) -> bool:
    """Tell a model from a loss or an activation: it has weights."""
    return next(module.parameters(), None) is not None


def _install() -> None:
    if _begins or _ends:
        return
    # said of every compiled model while there are hooks on all modules
    warnings.filterwarnings("ignore", message="Using `torch.compile", category=UserWarning)
    nn.modules.module.register_module_forward_pre_hook(_begin)
    nn.modules.module.register_module_forward_hook(_end, always_call=True)


def _begin(module: nn.Module, args: Any) -> Any:
    if torch.compiler.is_compiling():
        return None
    depth = getattr(_local, "depth", 0)
    _local.depth = depth + 1
    if depth or moments.is_quiet() or not is_model(module):
        return None
    result = None
    for listener in _begins:
        changed = listener(module, args if result is None else result)
        result = changed if changed is not None else result
    return result


def _end(module: nn.Module, args: Any, output: Any) -> None:
    if torch.compiler.is_compiling():
        return
    _local.depth = max(0, getattr(_local, "depth", 1) - 1)
    if _local.depth or moments.is_quiet() or not is_model(module):
        return
    for listener in _ends:
        listener(module, args, output)
