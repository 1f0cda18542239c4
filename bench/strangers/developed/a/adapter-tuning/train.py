"""Pretrain a regressor on plenty of source data, then adapt it to a shifted domain with few samples."""
import torch
import torch.nn.functional as F
from torch import nn

from adapters import describe, inject, trainable


class Regressor(nn.Module):
    def __init__(self, d=10, h=48):
        super().__init__()
        self.inp = nn.Linear(d, h)
        self.mid = nn.Linear(h, h)
        self.out = nn.Linear(h, 1)

    def forward(self, x):
        x = F.gelu(self.inp(x))
        x = x + F.gelu(self.mid(x))
        return self.out(x).squeeze(-1)


def domain(n, shift, gen, d=10):
    x = torch.randn(n, d, generator=gen)
    w = torch.linspace(-1, 1, d)
    y = torch.sin(x @ w) + shift * x[:, 0] * x[:, 1] + shift * 0.5 * x[:, 2]
    return x, y + 0.05 * torch.randn(n, generator=gen)


def optimise(net, params, data, steps, lr, batch=64):
    x, y = data
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    net.train()
    for k in range(steps):
        i = torch.randint(len(x), (batch,))
        loss = F.mse_loss(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (k + 1) % (steps // 3) == 0:
            print(f"   step {k + 1:4d} loss {loss.item():.4f}")


@torch.no_grad()
def rmse(net, data):
    net.eval()
    return F.mse_loss(net(data[0]), data[1]).sqrt().item()


def main():
    torch.manual_seed(6)
    gen = torch.Generator().manual_seed(6)
    source, source_test = domain(4000, 0.0, gen), domain(500, 0.0, gen)
    target, target_test = domain(600, 1.0, gen), domain(500, 1.0, gen)

    net = Regressor()
    print("pretraining")
    optimise(net, net.parameters(), source, 600, 3e-3)
    print(f"source rmse {rmse(net, source_test):.3f}   target rmse {rmse(net, target_test):.3f}")

    net.requires_grad_(False)
    inject(net, r=4, alpha=8.0, skip=("out",))
    print("adapting:", describe(net))
    optimise(net, trainable(net), target, 600, 5e-3)
    print(f"target rmse {rmse(net, target_test):.3f}")


if __name__ == "__main__":
    main()
