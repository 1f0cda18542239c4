import torch
import torch.nn as nn
import torch.nn.functional as F


class RelationMixer(nn.Module):
    """Learns how much each edge type contributes and merges them to one adjacency."""

    def __init__(self, n_rel):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n_rel))

    def forward(self, adjs):
        w = torch.softmax(self.logits, dim=0)
        return torch.einsum("r,rij->ij", w, adjs)


class GCN(nn.Module):
    def __init__(self, d_in, d_hid, n_cls, p=0.5):
        super().__init__()
        self.self1, self.nbr1 = nn.Linear(d_in, d_hid), nn.Linear(d_in, d_hid, bias=False)
        self.self2, self.nbr2 = nn.Linear(d_hid, n_cls), nn.Linear(d_hid, n_cls, bias=False)
        self.p = p

    def forward(self, x, a):
        x = F.dropout(x, self.p, self.training)
        h = F.relu(self.self1(x) + a @ self.nbr1(x))
        h = F.dropout(h, self.p, self.training)
        return self.self2(h) + a @ self.nbr2(h)
