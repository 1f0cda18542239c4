"""Lets a loss go of its graph once it has been used, so that sums and lists do not keep it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from . import moments, nested
from .change_report import ChangeReport
from .replacement import replace


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Detach each loss after its backward pass, unless the pass keeps its graph."""
    unscaled: list[torch.Tensor] = []

    def scaling(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def scale(scaler: Any, outputs: Any) -> Any:
            unscaled[:] = list(nested.tensors(outputs))
            return original(scaler, outputs)

        return scale

    def wrapping(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(tensors, *args, **kwargs)
            keeps = (*args[1:3], kwargs.get("retain_graph"), kwargs.get("create_graph"))
            if not any(keeps) and not moments.is_quiet():
                report.guard(detach)(tensors)
            return result

        return backward

    def detach(losses: Any) -> None:
        for loss in [*nested.tensors(losses), *unscaled]:
            if loss.grad_fn is not None and not loss._is_view():
                loss.detach_()
                report.count()
        unscaled.clear()

    report.note_if_idle("a sum that is built before the backward pass keeps its graph")
    replace(torch.amp.GradScaler, "scale", scaling)
    replace(torch.autograd, "backward", wrapping)
