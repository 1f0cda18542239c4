"""Run-time diagnostics that end up in the paper's appendix."""
import torch
import torch.nn.functional as F


class GradientAlignment:
    """Cosine between the gradients of two held-out probe batches.

    A cheap indicator of gradient noise (cf. gradient confusion)."""

    def __init__(self, model, probe_a, probe_b):
        self.model = model
        self.probes = (probe_a, probe_b)
        self.values = []

    def _flat_grad(self, batch):
        x, y = batch
        self.model.zero_grad()
        F.cross_entropy(self.model(x), y).backward()
        return torch.cat([p.grad.flatten().clone() for p in self.model.parameters() if p.grad is not None])

    def measure(self):
        ga, gb = (self._flat_grad(b) for b in self.probes)
        self.model.zero_grad()
        cos = F.cosine_similarity(ga, gb, dim=0).item()
        self.values.append(cos)
        return cos
