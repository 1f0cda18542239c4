import torch
from torch import nn


class GraphGRU(nn.Module):
    """diffusion-convolutional GRU over a fixed sensor graph"""

    def __init__(self, d_in, d_hid, support):
        super().__init__()
        self.register_buffer("support", support)
        self.gates = nn.Linear(2 * (d_in + d_hid), 2 * d_hid)
        self.cand = nn.Linear(2 * (d_in + d_hid), d_hid)
        self.d_hid = d_hid

    def _mix(self, x):
        return torch.cat([x, torch.einsum("ij,bjd->bid", self.support, x)], dim=-1)

    def forward(self, seq):
        b, t, n, _ = seq.shape
        h = seq.new_zeros(b, n, self.d_hid)
        for k in range(t):
            x = seq[:, k]
            r, u = torch.sigmoid(self.gates(self._mix(torch.cat([x, h], -1)))).chunk(2, -1)
            c = torch.tanh(self.cand(self._mix(torch.cat([x, r * h], -1))))
            h = u * h + (1 - u) * c
        return h


class TrafficNet(nn.Module):
    def __init__(self, support, d_hid=64, horizon=12):
        super().__init__()
        self.rnn = GraphGRU(1, d_hid, support)
        self.head = nn.Linear(d_hid, horizon)

    def forward(self, seq):
        return self.head(self.rnn(seq)).transpose(1, 2)
