"""Pre-train an MLP on one domain, then adapt it to a shifted one with low-rank updates only."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LowRank(nn.Module):
    def __init__(self, linear, r=4, alpha=8.0):
        super().__init__()
        self.linear = linear
        self.linear.weight.requires_grad = False
        self.linear.bias.requires_grad = False
        self.down = nn.Parameter(torch.empty(r, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, r))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / r

    def forward(self, x):
        return self.linear(x) + self.scale * F.linear(F.linear(x, self.down), self.up)


def make_net():
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))


def domain(n, shift, seed):
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(20, 3, generator=torch.Generator().manual_seed(99))
    rot = torch.linalg.qr(torch.randn(20, 20, generator=torch.Generator().manual_seed(7)))[0]
    x = torch.randn(n, 20, generator=g)
    y = (x @ proto).argmax(1)
    return (x @ rot if shift else x), y


def fit(net, x, y, lr, epochs, params=None):
    params = list(net.parameters()) if params is None else params
    opt = torch.optim.Adam(params, lr=lr)
    for _ in range(epochs):
        net.train()
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


@torch.no_grad()
def acc(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    src, src_test = domain(3000, False, 0), domain(1000, False, 1)
    tgt, tgt_test = domain(1500, True, 2), domain(1000, True, 3)
    base = make_net()
    fit(base, *src, lr=2e-3, epochs=6)
    print("source acc", acc(base, *src_test), "target before", acc(base, *tgt_test))

    adapted = copy.deepcopy(base)
    for i in (0, 2, 4):
        adapted[i] = LowRank(adapted[i], r=8, alpha=16)
    lora = [p for p in adapted.parameters() if p.requires_grad]
    before = adapted[0].linear.weight.clone()
    fit(adapted, *tgt, lr=5e-3, epochs=12, params=lora)
    assert torch.equal(before, adapted[0].linear.weight)
    print("target after", acc(adapted, *tgt_test), "with", sum(p.numel() for p in lora), "parameters")
