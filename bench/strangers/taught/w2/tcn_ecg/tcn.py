import torch
import torch.nn as nn


class CausalConv1d(nn.Conv1d):
    def __init__(self, cin, cout, k, dilation):
        super().__init__(cin, cout, k, dilation=dilation, padding=(k - 1) * dilation)

    def forward(self, x):
        return super().forward(x)[..., :x.size(-1)].contiguous()


class TemporalBlock(nn.Module):
    """Bai et al. 2018, figure 1(b)."""

    def __init__(self, cin, cout, k=3, dilation=1, dropout=0.1):
        super().__init__()
        self.net = nn.Sequential(
            CausalConv1d(cin, cout, k, dilation), nn.ReLU(), nn.Dropout(dropout),
            CausalConv1d(cout, cout, k, dilation), nn.ReLU(), nn.Dropout(dropout),
        )

    def forward(self, x):
        out = self.net(x)
        res = x
        if res.shape[1] != out.shape[1]:
            res = nn.Conv1d(res.shape[1], out.shape[1], kernel_size=1).to(x.device)(res)
        return torch.relu(out + res)


class TCN(nn.Module):
    def __init__(self, n_leads, channels, n_out):
        super().__init__()
        blocks = []
        prev = n_leads
        for i, c in enumerate(channels):
            blocks.append(TemporalBlock(prev, c, dilation=2 ** i))
            prev = c
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Linear(prev, n_out)

    def forward(self, x):
        h = self.blocks(x)
        return self.classify(h.mean(-1))
