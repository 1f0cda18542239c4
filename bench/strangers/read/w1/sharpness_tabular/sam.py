from __future__ import annotations

from typing import Callable

import torch
from torch import Tensor


class SAM:
    """Sharpness aware minimisation around any base optimizer."""

    def __init__(self, base: torch.optim.Optimizer, rho: float = 0.05) -> None:
        self.base = base
        self.rho = rho
        self._origin: dict[Tensor, Tensor] = {}

    def _trainable(self):
        for group in self.base.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    yield p

    @torch.no_grad()
    def _ascend(self) -> None:
        params = list(self._trainable())
        norm = torch.stack([p.grad.norm() for p in params]).norm() + 1e-12
        for p in params:
            self._origin[p] = p.detach().clone()
            p.add_(p.grad, alpha=self.rho / norm.item())
            p.grad = None

    @torch.no_grad()
    def _return(self) -> None:
        for p, value in self._origin.items():
            p.copy_(value)
            p.grad = None
        self._origin.clear()

    def step(self, closure: Callable[[], Tensor]) -> float:
        self.base.zero_grad(set_to_none=True)
        loss = closure()
        loss.backward()
        self._ascend()
        closure().backward()
        self._return()
        self.base.step()
        return loss.item()
