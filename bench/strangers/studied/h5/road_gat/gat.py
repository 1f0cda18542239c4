import torch
import torch.nn.functional as F
from torch import nn


class GraphAttention(nn.Module):
    """Dense multi-head attention over the neighbours given by an adjacency matrix."""

    def __init__(self, d_in, d_out, heads=4):
        super().__init__()
        self.heads, self.d = heads, d_out // heads
        self.lin = nn.Linear(d_in, d_out, bias=False)
        self.src = nn.Parameter(torch.randn(heads, self.d) * 0.1)
        self.dst = nn.Parameter(torch.randn(heads, self.d) * 0.1)
        self.skip = nn.Linear(d_in, d_out)

    def forward(self, x, adj):
        h = self.lin(x).view(len(x), self.heads, self.d)
        e = F.leaky_relu((h * self.src).sum(-1).T[:, :, None] + (h * self.dst).sum(-1).T[:, None, :], 0.2)
        e = e.masked_fill(adj[None] == 0, float("-inf"))
        a = torch.softmax(e, dim=-1)
        out = torch.einsum("hij,jhd->ihd", a, h).reshape(len(x), -1)
        return out + self.skip(x)


class RoadNet(nn.Module):
    def __init__(self, d_in, hidden, classes):
        super().__init__()
        self.g1 = GraphAttention(d_in, hidden)
        self.g2 = GraphAttention(hidden, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x, adj):
        h = F.elu(self.g1(x, adj))
        h = F.elu(self.g2(h, adj))
        return self.out(h)
