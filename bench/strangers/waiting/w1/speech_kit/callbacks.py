import torch

from engine import Callback


class ClipGradient(Callback):
    def __init__(self, max_norm=5.0):
        self.max_norm = max_norm
        self.last_norm = 0.0

    def on_batch_end(self, engine):
        self.last_norm = torch.nn.utils.clip_grad_norm_(engine.model.parameters(), self.max_norm).item()


class Progress(Callback):
    def __init__(self, clipper, every=20):
        self.clipper, self.every, self.buf = clipper, every, []

    def on_batch_end(self, engine):
        self.buf.append(engine.loss.item())
        if engine.global_step % self.every == 0:
            print(f"step {engine.global_step} ctc {sum(self.buf) / len(self.buf):.3f} gnorm {self.clipper.last_norm:.2f}")
            self.buf.clear()


class WarmupLR(Callback):
    def __init__(self, base_lr, warmup=30):
        self.base_lr, self.warmup = base_lr, warmup

    def on_batch_start(self, engine):
        scale = min(1.0, (engine.global_step + 1) / self.warmup)
        for g in engine.optimizer.param_groups:
            g["lr"] = self.base_lr * scale
