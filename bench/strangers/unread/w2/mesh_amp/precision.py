import torch
from torch import nn


class ScaledStepper:
    """fp16 loss scaling with accumulation: unscale once per update, clip, step, adapt the scale."""

    def __init__(self, model, optimizer, scheduler, device, accumulate, max_norm):
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.device, self.accumulate, self.max_norm = device, accumulate, max_norm
        self.scaler = torch.amp.GradScaler(device, init_scale=2.0 ** 14, growth_interval=50)
        self.pending = 0
        self.skipped = 0

    def autocast(self):
        return torch.autocast(self.device, dtype=torch.float16)

    def __call__(self, loss):
        self.scaler.scale(loss / self.accumulate).backward()
        self.pending += 1
        if self.pending == self.accumulate:
            self.flush()

    def flush(self):
        if self.pending == 0:
            return
        self.scaler.unscale_(self.optimizer)
        if self.pending < self.accumulate:
            for p in self.model.parameters():
                if p.grad is not None:
                    p.grad.mul_(self.accumulate / self.pending)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        before = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.scaler.get_scale() < before:
            self.skipped += 1
        else:
            self.scheduler.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.pending = 0
