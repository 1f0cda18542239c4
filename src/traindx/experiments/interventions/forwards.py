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
_changes: list[Callable[[nn.Module, Any, Any], Any]] = []
_local = threading.local()


def on_begin(
    report: ChangeReport, listener: Callable[[nn.Module, Any], Any], *, is_first: bool = False
) -> None:
    """Call a listener with the module and its positional arguments; it may return new ones.

    The first listener sees the arguments as the program gave them.
    """
    _install()
    _begins.insert(0 if is_first else len(_begins), report.guard(listener))


def on_end(report: ChangeReport, listener: Callable[[nn.Module, Any, Any], Any]) -> None:
    """Call a listener with the module, its arguments and what it gave."""
    _install()
    _ends.append(report.guard(listener))


def on_output(report: ChangeReport, change: Callable[[nn.Module, Any, Any], Any]) -> None:
    """Let `change(module, args, output)` give another output; None leaves it as it is."""
    _install()
    _changes.append(report.guard(change))


def is_aside() -> bool:
    """Tell whether the model is called by us, and not by the program."""
    return bool(getattr(_local, "is_aside", False))


def called_aside(model: nn.Module, args: Any) -> Any:
    """Call a model ourselves: what is changed about its calls holds for this one as well."""
    _local.is_aside, depth = True, getattr(_local, "depth", 0)
    _local.depth = 0
    try:
        return model(*args)
    finally:
        _local.is_aside, _local.depth = False, depth


def is_model(module: nn.Module) -> bool:
    """Tell a model from a loss or an activation: it has weights."""
    return next(module.parameters(), None) is not None


def _install() -> None:
    if _begins or _ends or _changes:
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
    if depth or _is_quiet() or not is_model(module):
        return None
    result = None
    for listener in _begins:
        changed = listener(module, args if result is None else result)
        result = changed if changed is not None else result
    return result


def _end(module: nn.Module, args: Any, output: Any) -> Any:
    if torch.compiler.is_compiling():
        return None
    _local.depth = max(0, getattr(_local, "depth", 1) - 1)
    if _local.depth or _is_quiet() or not is_model(module):
        return None
    given = output
    for change in _changes:
        changed = change(module, args, output)
        output = output if changed is None else changed
    for listener in _ends:
        listener(module, args, output)
    return None if output is given else output


def _is_quiet() -> bool:
    return moments.is_quiet() and not is_aside()
