import torch
from torch import nn


def normalised_adjacency(edges, n):
    a = torch.zeros(n, n)
    a[edges[0], edges[1]] = 1
    a = ((a + a.T) > 0).float() + torch.eye(n)
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None, :]


class GCN(nn.Module):
    def __init__(self, n_in, hidden, n_out, layers, dropout):
        super().__init__()
        dims = [n_in] + [hidden] * (layers - 1) + [n_out]
        self.lins = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.drop = nn.Dropout(dropout)

    def forward(self, x, adj):
        for i, lin in enumerate(self.lins):
            x = adj @ lin(self.drop(x))
            if i + 1 < len(self.lins):
                x = torch.relu(x)
        return x
