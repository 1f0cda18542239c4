"""Clips the norm of the gradients of each optimizer before its weights change."""

from __future__ import annotations

from math import isfinite
from typing import Any

import torch

from . import moments
from .change_report import ChangeReport


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Clip to `max_norm`; gradients that are no numbers are left as they are."""
    max_norm = float(values.get("max_norm", 1.0))

    def clip(optimizer: torch.optim.Optimizer) -> None:
        parameters = [p for p in moments.parameters_of(optimizer) if p.grad is not None]
        if not parameters:
            return
        scale = getattr(optimizer, "grad_scale", None)  # a fused step removes it by itself
        limit = max_norm * (float(scale) if scale is not None else 1.0)
        norm = _total_norm([p.grad for p in parameters if p.grad is not None])
        if not isfinite(norm):
            report.note("a gradient was not finite; it was not clipped")
        elif norm > limit:
            report.count()
            # by its public name, so that a recorder sees it as it would see the program's own
            torch.nn.utils.clip_grad_norm_(parameters, limit)

    moments.on("update", report, clip)


def _total_norm(gradients: list[torch.Tensor]) -> float:
    squares = 0.0
    for gradient in gradients:
        values = gradient.detach()
        values = values.coalesce().values() if values.is_sparse else values
        norm = torch.linalg.vector_norm(values.float())
        whole = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        squares += float(whole) ** 2
    return float(squares**0.5)
