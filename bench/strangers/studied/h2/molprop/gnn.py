import torch
from torch import nn


class MessagePassing(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.msg = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU())
        self.upd = nn.GRUCell(dim, dim)

    def forward(self, h, edge_index):
        src, dst = edge_index
        m = self.msg(torch.cat([h[src], h[dst]], dim=-1))
        agg = torch.zeros_like(h).index_add(0, dst, m)
        return self.upd(agg, h)


class MolNet(nn.Module):
    def __init__(self, n_types, dim=32, rounds=3):
        super().__init__()
        self.inp = nn.Linear(n_types, dim)
        self.rounds = nn.ModuleList(MessagePassing(dim) for _ in range(rounds))
        self.out = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, batch):
        h = self.inp(batch.x)
        for layer in self.rounds:
            h = layer(h, batch.edge_index)
        n = len(batch.y)
        pooled = torch.zeros(n, h.shape[1]).index_add(0, batch.graph_id, h)
        size = torch.bincount(batch.graph_id, minlength=n).unsqueeze(1)
        return self.out(pooled / size).squeeze(1)
