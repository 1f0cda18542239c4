"""The hooks that everyone writes first: statistics of everything, at every step, read at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

seen: dict[str, tuple[float, ...]] = {}


def _statistics(tensor: torch.Tensor) -> tuple[float, ...]:
    values = tensor.detach().float()
    is_bad = (~torch.isfinite(values)).any()
    numbers = (values.mean(), values.std(), values.min(), values.max(), values.norm(), is_bad)
    return tuple(number.item() for number in numbers)


def attach(model: nn.Module) -> None:
    """Hook every module and every parameter."""
    for name, module in model.named_modules():

        def forward(_: nn.Module, args: Any, output: Any, name: str = name) -> None:
            if isinstance(output, torch.Tensor) and output.is_floating_point():
                seen[name] = _statistics(output)

        module.register_forward_hook(forward)
    for name, parameter in model.named_parameters():

        def accumulated(p: torch.Tensor, name: str = name) -> None:
            if p.grad is not None:
                seen[f"{name}.grad"] = _statistics(p.grad)

        parameter.register_post_accumulate_grad_hook(accumulated)
