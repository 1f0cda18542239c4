"""Leaves gradients as they are where the program clips them with the functions of torch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .change_report import ChangeReport
from .replacement import replace

UNLIMITED = 1e30


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Clip to a norm that no gradient has: what the function returns stays true."""

    def unclipped(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def clip_grad_norm_(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            norm = original(parameters, UNLIMITED, *args, **kwargs)
            if float(norm) > float(max_norm):
                report.count()
            return norm

        return clip_grad_norm_

    def unbounded(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def clip_grad_value_(parameters: Any, clip_value: Any, *args: Any, **kwargs: Any) -> None:
            held = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            if any(p.grad is not None and bool((p.grad.abs() > clip_value).any()) for p in held):
                report.count()

        return clip_grad_value_

    report.note_if_idle("clipping that is written by hand is not reached")
    utils: Any = nn.utils
    replace(utils, "clip_grad_norm_", unclipped)
    replace(utils, "clip_grad_value_", unbounded)
