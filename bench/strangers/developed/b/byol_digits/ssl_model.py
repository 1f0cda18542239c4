import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def head(i, o, h=64):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


class BYOL(nn.Module):
    def __init__(self, encoder, feat, proj=32, tau=0.97):
        super().__init__()
        self.tau = tau
        self.online = nn.Sequential(encoder, head(feat, proj))
        self.predict = head(proj, proj)
        self.target = copy.deepcopy(self.online).requires_grad_(False)

    @property
    def encoder(self):
        return self.online[0]

    def forward(self, a, b):
        pa, pb = self.predict(self.online(a)), self.predict(self.online(b))
        with torch.no_grad():
            ta, tb = self.target(a), self.target(b)
        return (2 - F.cosine_similarity(pa, tb) - F.cosine_similarity(pb, ta)).mean()

    @torch.no_grad()
    def move_target(self):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.mul_(self.tau).add_(o, alpha=1 - self.tau)
        for t, o in zip(self.target.buffers(), self.online.buffers()):
            t.copy_(o)
