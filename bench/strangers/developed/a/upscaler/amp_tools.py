"""Mixed precision in one place, so that the trainers need not care."""
from contextlib import nullcontext

import torch


class MixedPrecision:
    def __init__(self, device, enabled=None):
        self.device = torch.device(device)
        self.enabled = self.device.type == "cuda" if enabled is None else enabled
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.enabled, init_scale=2.0 ** 14)

    def autocast(self):
        if not self.enabled:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.float16)

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def apply(self, optimizer, params=None, max_norm=None):
        """Clip (if asked for) and take the step. Returns the gradient norm."""
        norm = None
        self.scaler.unscale_(optimizer)
        if max_norm is not None:
            norm = torch.nn.utils.clip_grad_norm_(params, max_norm)
        self.scaler.step(optimizer)
        return norm

    def state_dict(self):
        return self.scaler.state_dict()

    def load_state_dict(self, state):
        self.scaler.load_state_dict(state)
