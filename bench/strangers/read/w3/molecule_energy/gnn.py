import torch
from torch import nn


class MeanConv(nn.Module):
    def __init__(self, dim_in, dim_out):
        super().__init__()
        self.self_lin = nn.Linear(dim_in, dim_out)
        self.neigh_lin = nn.Linear(dim_in, dim_out, bias=False)

    def forward(self, h, src, dst):
        agg = torch.zeros_like(h).index_add_(0, dst, h[src])
        deg = torch.zeros(h.size(0), device=h.device).index_add_(0, dst, torch.ones_like(dst, dtype=h.dtype))
        return self.self_lin(h) + self.neigh_lin(agg / deg.clamp(min=1).unsqueeze(1))


class EnergyGNN(nn.Module):
    def __init__(self, atom_types, dim=32, n_layers=3):
        super().__init__()
        self.atoms = nn.Embedding(atom_types, dim)
        self.convs = nn.ModuleList(MeanConv(dim, dim) for _ in range(n_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(n_layers - 1))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, z, edges, graph_id, n_graphs):
        src, dst = edges
        h = self.atoms(z)
        for conv, norm in zip(self.convs, self.norms):
            h = h + torch.relu(norm(conv(h, src, dst)))
        pooled = h.new_zeros(n_graphs, h.size(1)).index_add_(0, graph_id, h)
        return self.readout(pooled).squeeze(1)
