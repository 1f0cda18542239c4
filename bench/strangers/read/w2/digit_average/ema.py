import copy

import torch


class AveragedModel:
    def __init__(self, model, decay=0.98):
        self.shadow = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay
        self.updates = 0

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - d)
        for s, b in zip(self.shadow.buffers(), model.buffers()):
            s.copy_(b)
