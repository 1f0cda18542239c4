import torch
from torch import nn

from molecules import ATOMS


class MPNN(nn.Module):
    def __init__(self, dim=32, rounds=3):
        super().__init__()
        self.atom = nn.Embedding(ATOMS, dim)
        self.message = nn.ModuleList(nn.Linear(dim, dim) for _ in range(rounds))
        self.update = nn.GRUCell(dim, dim)
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, kind, adj, mask):
        h = self.atom(kind)
        b, n, d = h.shape
        for lin in self.message:
            m = adj @ lin(h)
            h = self.update(m.reshape(-1, d), h.reshape(-1, d)).reshape(b, n, d)
        atomwise = self.readout(h).squeeze(-1) * mask
        return atomwise.sum(1) / mask.sum(1)
