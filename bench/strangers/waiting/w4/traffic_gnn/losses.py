import math

import torch


def masked_mae(pred, target):
    """sensors that were offline report 0"""
    valid = (target != 0).float()
    return ((pred - target).abs() * valid).sum() / valid.sum().clamp(min=1.0)


class HealthCheck:
    """Aborts a run early when the numbers go wrong; used in all our projects."""

    def __init__(self, model, logger, max_weight=1e4):
        self.model, self.logger, self.max_weight = model, logger, max_weight

    def __call__(self, step, loss):
        if not math.isfinite(loss):
            raise FloatingPointError(f"loss is {loss} at step {step}")
        for name, p in self.model.named_parameters():
            if p.abs().max() > self.max_weight or (p.grad is not None and not torch.isfinite(p.grad).all()):
                raise FloatingPointError(f"{name} out of range at step {step}")
        self.logger.debug("step %d loss %.5f", step, loss)
