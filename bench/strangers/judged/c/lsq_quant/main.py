"""Quantisation-aware training with learned step sizes (LSQ, Esser et al. 2020), weights 4 bit, activations 4 bit."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class GradScale(torch.autograd.Function):
    """identity forward, scaled gradient backward"""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, None


def round_ste(x):
    return x + (x.round() - x).detach()


class Quantizer(nn.Module):
    def __init__(self, bits, signed):
        super().__init__()
        self.lo, self.hi = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)
        self.step = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if not self.ready:
            with torch.no_grad():
                self.step.copy_(2 * x.abs().mean() / self.hi ** 0.5)
                self.ready.fill_(True)
        s = GradScale.apply(self.step.abs() + 1e-8, (x.numel() * self.hi) ** -0.5)
        return round_ste((x / s).clamp(self.lo, self.hi)) * s


class QLinear(nn.Linear):
    def __init__(self, *a, bits=4, **kw):
        super().__init__(*a, **kw)
        self.wq, self.aq = Quantizer(bits, signed=True), Quantizer(bits, signed=False)

    @classmethod
    def from_float(cls, lin, bits=4):
        q = cls(lin.in_features, lin.out_features, bits=bits)
        q.load_state_dict(lin.state_dict(), strict=False)
        return q

    def forward(self, x):
        return F.linear(self.aq(x), self.wq(self.weight), self.bias)


def quantise(float_net):
    net = copy.deepcopy(float_net)
    for name, child in list(net.named_children()):
        if isinstance(child, nn.Linear):
            setattr(net, name, QLinear.from_float(child))
    return net


def fit(net, data, epochs, lr):
    x, y = data
    opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    net.train()
    for _ in range(epochs):
        for b in torch.randperm(len(y)).split(64):
            loss = F.cross_entropy(net(x[b]), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


@torch.no_grad()
def acc(net, data):
    net.eval()
    return (net(data[0]).argmax(1) == data[1]).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(33)
    d = load_digits()
    xa, xb, ya, yb = train_test_split(d.data / 16.0, d.target, test_size=0.3, random_state=33)
    train, test = [(torch.tensor(p, dtype=torch.float32), torch.tensor(q)) for p, q in ((xa, ya), (xb, yb))]
    base = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10))
    print("float loss", fit(base, train, 12, 0.05), "acc", acc(base, test))
    q = quantise(base)
    print("w4a4 loss", fit(q, train, 6, 0.01), "acc", acc(q, test))
