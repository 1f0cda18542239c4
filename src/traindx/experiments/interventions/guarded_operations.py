"""Keeps operations within their domain: log and sqrt of 0, division by 0, exp of what overflows.

With `softmax` it keeps softmax from rows that are masked altogether, and nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import log
from typing import Any

import torch
from torch.nn import functional

from .change_report import ChangeReport
from .replacement import replace

SMALL = 1e-12  # far below what a loss can tell from 0, far above where float32 divides to infinity
EDGE = 1e-6  # from the ends of acos and asin, where their slopes are infinite

Mend = Callable[[torch.Tensor], "torch.Tensor | None"]  # None: nothing to mend


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Guard the operations."""
    if values.get("softmax"):
        for owner, name in ((torch, "softmax"), (torch.Tensor, "softmax"), (functional, "softmax")):
            replace(owner, name, lambda original: _guarded_softmax(original, report))
        return
    for name, mend in MENDS.items():
        _guard(name, 0, mend, report)
    for name in ("div", "true_divide", "divide", "__truediv__"):
        _guard(name, 1, _nonzero, report)


def _guard(name: str, at: int, mend: Mend, report: ChangeReport) -> None:
    """Guard an operation, as a function and as a method, by its argument at that place."""
    for owner in (torch, torch.Tensor):
        replace(owner, name, lambda original: _guarded(original, at, mend, report))


def _guarded(original: Any, at: int, mend: Mend, report: ChangeReport) -> Any:
    @functools.wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= at or report.failed or torch.compiler.is_compiling():
            return original(*args, **kwargs)
        try:
            mended = mend(args[at]) if _is_trained(args) and _is_real(args[at]) else None
        except Exception as error:  # the boundary to the user's program
            report.fail(error)
            mended = None
        if mended is None:
            return original(*args, **kwargs)
        report.count()
        return original(*args[:at], mended, *args[at + 1 :], **kwargs)

    return guarded


def _is_trained(args: Any) -> bool:
    """Tell whether a gradient flows through: optimizers and metrics are left alone."""
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _is_real(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and given.is_floating_point()


def _positive(x: torch.Tensor) -> torch.Tensor | None:
    return x.clamp_min(SMALL) if bool((x < SMALL).any()) else None


def _bounded(x: torch.Tensor) -> torch.Tensor | None:
    highest = log(torch.finfo(x.dtype).max) - 1.0
    return x.clamp_max(highest) if bool((x > highest).any()) else None


def _inside(x: torch.Tensor) -> torch.Tensor | None:
    edge = 1.0 - EDGE
    return x.clamp(-edge, edge) if bool((x.abs() > edge).any()) else None


def _nonzero(x: torch.Tensor) -> torch.Tensor | None:
    is_zero = x.abs() < SMALL
    return x.masked_fill(is_zero, SMALL) if bool(is_zero.any()) else None


MENDS: dict[str, Mend] = {
    "log": _positive,
    "log2": _positive,
    "log10": _positive,
    "sqrt": _positive,
    "rsqrt": _positive,
    "exp": _bounded,
    "acos": _inside,
    "asin": _inside,
    "reciprocal": _nonzero,
}


def _guarded_softmax(original: Any, report: ChangeReport) -> Any:
    @functools.wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if report.failed or torch.compiler.is_compiling() or not args:
            return original(*args, **kwargs)
        try:
            scores, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim")
            is_empty = (scores == float("-inf")).all(dim=dim, keepdim=True)
            number = int(is_empty.sum())
        except Exception as error:  # the boundary to the user's program
            report.fail(error)
            number = 0
        if not number:
            return original(*args, **kwargs)
        report.count(number)
        return original(scores.masked_fill(is_empty, 0.0), *args[1:], **kwargs)

    return guarded
