"""DP-SGD: clip the gradient of every sample, add noise, average."""
import torch
from torch.func import functional_call, grad, vmap


class PrivateGradients:
    def __init__(self, model, loss_fn, max_norm, noise, expected_batch):
        self.model, self.max_norm, self.noise, self.expected = model, max_norm, noise, expected_batch

        def sample_loss(params, x, y):
            out = functional_call(model, params, (x.unsqueeze(0),))
            return loss_fn(out, y.unsqueeze(0))

        self.per_sample = vmap(grad(sample_loss), in_dims=(None, 0, 0))

    def fill(self, x, y):
        params = {k: v.detach() for k, v in self.model.named_parameters()}
        grads = self.per_sample(params, x, y)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
        weight = (self.max_norm / norms.clamp(min=1e-9)).clamp(max=1.0)
        for name, p in self.model.named_parameters():
            g = torch.einsum("n,n...->...", weight, grads[name])
            g = g + self.noise * self.max_norm * torch.randn_like(g)
            p.grad = g / self.expected
        return norms.median().item()
