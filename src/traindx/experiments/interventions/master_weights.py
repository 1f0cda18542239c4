"""Keeps a copy in single precision of weights that are in half precision, and updates that one.

The model goes on computing in half precision; what is tested is whether small updates are lost.
"""

from __future__ import annotations

from typing import Any

import torch

from . import moments
from .change_report import ChangeReport

HALF = (torch.float16, torch.bfloat16)


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Take each step on the copies, and round them afterwards."""
    masters: dict[int, torch.Tensor] = {}  # by parameter; optimizers keep those alive
    taken: list[tuple[torch.Tensor, torch.dtype, torch.Tensor]] = []

    def widen(optimizer: torch.optim.Optimizer) -> None:
        taken.clear()
        for parameter in moments.parameters_of(optimizer):
            gradient, kind = parameter.grad, parameter.dtype
            if kind not in HALF or gradient is None or gradient.is_sparse:
                continue
            master = masters.get(id(parameter))
            if master is None or not torch.equal(master.to(kind), parameter.detach()):
                master = masters[id(parameter)] = parameter.detach().float()  # set by the program
            parameter.grad = None
            parameter.data = master
            parameter.grad = gradient.float()
            taken.append((parameter, kind, gradient))
        if taken:
            report.count()

    def round_off(optimizer: torch.optim.Optimizer) -> None:
        for parameter, kind, gradient in taken:
            masters[id(parameter)] = parameter.data
            parameter.grad = None
            parameter.data = parameter.data.to(kind)
            parameter.grad = gradient
        taken.clear()

    moments.on("update", report, widen)
    moments.on("step_ends", report, round_off)
