"""Adaptive gradient clipping (Brock et al. 2021), unit-wise norms."""
import torch


def unitwise_norm(t):
    if t.ndim <= 1:
        return t.norm()
    return t.flatten(1).norm(dim=1).view(-1, *[1] * (t.ndim - 1))


@torch.no_grad()
def adaptive_clip_(parameters, clipping=0.02, eps=1e-3):
    for p in parameters:
        if p.grad is None:
            continue
        w_norm = unitwise_norm(p)
        limit = clipping * torch.clamp(w_norm, max=eps)
        g_norm = unitwise_norm(p.grad)
        factor = limit / g_norm.clamp(min=1e-6)
        p.grad.copy_(torch.where(g_norm > limit, p.grad * factor, p.grad))
