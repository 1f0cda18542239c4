"""Optimizer step inside the backward pass: one small optimizer per parameter, run by a hook as soon as
the gradient of that parameter is complete, after which the gradient is released."""
import torch


class FusedBackward:
    def __init__(self, params, factory, **kwargs):
        self.optims = {p: factory([p], **kwargs) for p in params if p.requires_grad}
        self.handles = [p.register_post_accumulate_grad_hook(self._hook) for p in self.optims]

    def _hook(self, p):
        opt = self.optims[p]
        opt.step()
        opt.zero_grad(set_to_none=True)

    def set_lr(self, lr):
        for opt in self.optims.values():
            for group in opt.param_groups:
                group["lr"] = lr

    def close(self):
        for h in self.handles:
            h.remove()
