import torch
from torch import nn
import torch.nn.functional as F

_BLOCKS = {}


def register(name):
    def deco(cls):
        _BLOCKS[name] = cls
        return cls
    return deco


def make_block(name, **kw):
    return _BLOCKS[name](**kw)


@register("causal")
class CausalConv(nn.Module):
    def __init__(self, cin, cout, k, dilation):
        super().__init__()
        self.left = (k - 1) * dilation
        self.conv = nn.Conv1d(cin, cout, k, dilation=dilation)
        self.norm = nn.GroupNorm(1, cout)

    def forward(self, x):
        return F.gelu(self.norm(self.conv(F.pad(x, (self.left, 0)))))


@register("pool")
class PooledConv(nn.Module):
    """Coarse view of the series: average over `dilation` steps, conv, stretch back."""

    def __init__(self, cin, cout, k, dilation):
        super().__init__()
        self.d = dilation
        self.conv = nn.Conv1d(cin, cout, k, padding=k // 2)

    def forward(self, x):
        T = x.shape[-1]
        y = F.gelu(self.conv(F.avg_pool1d(x, self.d)))
        return F.interpolate(y, size=T, mode="nearest")


class MultiScaleForecaster(nn.Module):
    def __init__(self, n_feat, width, dilations, horizon, kind="causal", k=3):
        super().__init__()
        self.stem = nn.Conv1d(n_feat, width, 1)
        # keyed by dilation so that single scales can be switched off in ablations
        self.scales = {d: make_block(kind, cin=width, cout=width, k=k, dilation=d) for d in dilations}
        self.mix = nn.Linear(width * len(dilations), width)
        self.head = nn.Linear(width, horizon)

    def forward(self, x, skip=()):
        h = F.gelu(self.stem(x.transpose(1, 2)))
        feats = [torch.zeros_like(h) if d in skip else blk(h) for d, blk in self.scales.items()]
        z = torch.cat([f[..., -1] for f in feats], dim=-1)
        return self.head(F.gelu(self.mix(z)))
