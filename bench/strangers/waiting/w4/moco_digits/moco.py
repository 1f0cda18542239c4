import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MoCo(nn.Module):
    def __init__(self, encoder, dim, queue=512, m=0.99, temp=0.1):
        super().__init__()
        self.m, self.temp = m, temp
        self.query = encoder
        self.key = copy.deepcopy(encoder)
        for p in self.key.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, queue), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update(self):
        for q, k in zip(self.query.parameters(), self.key.parameters()):
            k.data.mul_(self.m).add_(q.data, alpha=1 - self.m)

    @torch.no_grad()
    def _enqueue(self, keys):
        n, p = len(keys), int(self.ptr)
        self.queue[:, p:p + n] = keys.t()
        self.ptr[0] = (p + n) % self.queue.size(1)

    def forward(self, a, b):
        q = F.normalize(self.query(a), dim=1)
        with torch.no_grad():
            self._momentum_update()
            k = F.normalize(self.key(b), dim=1)
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue.clone().detach()
        logits = torch.cat([pos, neg], 1) / self.temp
        self._enqueue(k)
        return logits, torch.zeros(len(q), dtype=torch.long, device=q.device)
