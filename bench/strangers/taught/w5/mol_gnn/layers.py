import torch
import torch.nn as nn


def scatter_mean(src, index, n):
    out = torch.zeros(n, src.size(1))
    cnt = torch.zeros(n, 1)
    out.index_add_(0, index, src)
    cnt.index_add_(0, index, torch.ones_like(src[:, :1]))
    return out / cnt.clamp(min=1)


class MPLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.msg = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.upd = nn.GRUCell(dim, dim)

    def forward(self, h, edge_index):
        src, dst = edge_index
        m = self.msg(torch.cat([h[src], h[dst]], dim=-1))
        return self.upd(scatter_mean(m, dst, h.size(0)), h)


class MolNet(nn.Module):
    def __init__(self, n_atom_types, dim=64, layers=3):
        super().__init__()
        self.embed = nn.Embedding(n_atom_types, dim)
        self.layers = nn.ModuleList(MPLayer(dim) for _ in range(layers))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, z, edge_index, batch, n_graphs):
        h = self.embed(z)
        for layer in self.layers:
            h = layer(h, edge_index)
        return self.readout(scatter_mean(h, batch, n_graphs)).squeeze(-1)
