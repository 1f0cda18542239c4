import copy

import torch


class ShadowModel:
    """Exponential moving average of weights and buffers."""

    def __init__(self, source, decay=0.95):
        self.decay = decay
        self.module = copy.deepcopy(source)
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, source):
        for mine, theirs in zip(self.module.parameters(), source.parameters()):
            mine.lerp_(theirs, 1 - self.decay)
        for mine, theirs in zip(self.module.buffers(), source.buffers()):
            mine.copy_(theirs)
