"""Runs a training script in this process, and replays its first bad step as the recorder does."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace

import torch
from torch.optim import optimizer as optimizers

from traindx.capture.recorder import places
from traindx.capture.recorder.replay import is_replaying, locate


class Ride:
    """The hooks that a replay needs, and what it said of the first loss or gradient that is bad."""

    def __init__(self):
        self.told = None
        self.batch = None
        self.forwards = []
        self.rng_state = None
        self.losses = []
        self._depth = 0

    def run(self, path, text, **names):
        path.write_text(text)
        names = {"__name__": "__main__", "__file__": str(path), **names}
        with self.hooked():
            exec(compile(text, str(path), "exec", dont_inherit=True), names)
        return names

    @contextlib.contextmanager
    def hooked(self):
        modules = torch.nn.modules.module
        handles = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave),
            optimizers.register_optimizer_step_pre_hook(self._step),
        ]
        loader, backward = torch.utils.data.DataLoader.__iter__, torch.autograd.backward

        def iterate(this):
            for batch in loader(this):
                self.batch, self.forwards, self.rng_state = batch, [], None
                yield batch

        def watched(tensors, *arguments, **options):
            loss = tensors if isinstance(tensors, torch.Tensor) else tensors[0]
            self.losses.append(float(loss.detach().sum()))
            if not torch.isfinite(loss).all():
                self._locate(loss, "loss", sys._getframe(1))
            return backward(tensors, *arguments, **options)

        torch.utils.data.DataLoader.__iter__ = iterate
        torch.autograd.backward = watched
        try:
            yield
        finally:
            torch.utils.data.DataLoader.__iter__, torch.autograd.backward = loader, backward
            for handle in handles:
                handle.remove()

    def _enter(self, module, args):
        if not is_replaying() and torch.is_grad_enabled():
            if self._depth == 0 and any(True for _ in module.parameters()):
                if not self.forwards:
                    self.rng_state = torch.get_rng_state()
                self.forwards.append(SimpleNamespace(name="", module=module, args=args, kwargs={}))
            self._depth += 1

    def _leave(self, module, args, output):
        if not is_replaying() and torch.is_grad_enabled():
            self._depth -= 1

    def _step(self, optimizer, args, kwargs):
        grads = [p.grad for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        if not all(bool(torch.isfinite(grad).all()) for grad in grads):
            self._locate(None, "gradient", sys._getframe(1))

    def _locate(self, loss, seen_in, frame):
        if self.told is None:
            self.told = locate(
                loss,
                seen_in=seen_in,
                batch=self.batch,
                forwards=self.forwards,
                rng_state=self.rng_state,
                frame=places.user_frame(frame),
            )
