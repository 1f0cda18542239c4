"""Putting a function of ours in the place of one of torch's."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from .change_report import ChangeReport


def replace(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    """Put what `wrap` makes of a function in its place."""
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, wrap(original))


def change_arguments(
    owner: Any, name: str, report: ChangeReport, change: Callable[[dict[str, Any]], Any]
) -> None:
    """Let `change` alter the arguments of a function, by their names, before each call.

    Calls that it does not alter, and calls that it fails on, go through as they came.
    """
    original = getattr(owner, name, None)
    if original is None:
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def changed(*args: Any, **kwargs: Any) -> Any:
        if report.failed or torch.compiler.is_compiling():
            return original(*args, **kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
            before = dict(bound.arguments)
            change(bound.arguments)
            is_same = all(
                k in before and before[k] is v for k, v in bound.arguments.items()
            ) and len(before) == len(bound.arguments)
        except TypeError:  # a wrong call: the program is to see its own error
            return original(*args, **kwargs)
        except Exception as error:  # the boundary to the user's program
            report.fail(error)
            return original(*args, **kwargs)
        if is_same:
            return original(*args, **kwargs)
        return original(*bound.args, **bound.kwargs)

    leave_scripts_alone(changed, original)
    setattr(owner, name, changed)


_originals: dict[int, tuple[Any, Any]] = {}  # by the functions that stand in for them


def leave_scripts_alone(ours: Any, original: Any) -> None:
    """Let TorchScript, which cannot read a function of ours, compile the one of torch."""
    try:
        from torch.jit import _builtins, _recursive

        name = _builtins._find_builtin(original)
        if name is not None:
            _builtins._register_builtin(ours, name)
        if not _originals:
            compile_function = _recursive.try_compile_fn

            def try_compile_fn(function: Any, place: Any) -> Any:
                while id(function) in _originals:
                    function = _originals[id(function)][1]
                return compile_function(function, place)

            _recursive.try_compile_fn = try_compile_fn
        _originals[id(ours)] = (ours, original)
    except (ImportError, AttributeError):  # another torch: scripts may not compile
        return
