"""Domain-adversarial training: labelled source, unlabelled target. Target *inputs* are meant to be seen in training
(transductive setting, target labels are not); the score is taken on further target data."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from layers import Reverse, RoundSTE


def blobs(n, angle, gen):
    y = torch.randint(0, 3, (n,), generator=gen)
    centre = torch.tensor([[0., 2.], [1.7, -1.], [-1.7, -1.]])
    x = centre[y] + 0.5 * torch.randn(n, 2, generator=gen)
    c, s = math.cos(angle), math.sin(angle)
    x = x @ torch.tensor([[c, -s], [s, c]]) + torch.tensor([0.5, 0.0]) * angle
    return x, y


class DANN(nn.Module):
    def __init__(self, h=48):
        super().__init__()
        self.feat = nn.Sequential(nn.Linear(2, h), nn.ReLU(), nn.Linear(h, h), nn.Tanh())
        self.label = nn.Linear(h, 3)
        self.rev = Reverse()
        self.domain = nn.Sequential(nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))

    def code(self, x):
        return RoundSTE.apply(self.feat(x), 8)

    def forward(self, x):
        return self.label(self.code(x))


def main(steps=400, batch=64):
    torch.manual_seed(23)
    gen = torch.Generator().manual_seed(23)
    sx, sy = blobs(900, 0.0, gen)
    tx, _ = blobs(900, 0.7, gen)
    hx, hy = blobs(400, 0.7, gen)
    mu, sd = sx.mean(0), sx.std(0)
    sx, tx, hx = ((v - mu) / sd for v in (sx, tx, hx))
    net = DANN()
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    for step in range(1, steps + 1):
        net.train()
        net.rev.lam = 0.3 * (2 / (1 + math.exp(-10 * step / steps)) - 1)
        s, t = torch.randint(len(sx), (batch,)), torch.randint(len(tx), (batch,))
        both = net.code(torch.cat([sx[s], tx[t]]))
        task = F.cross_entropy(net.label(both[:batch]), sy[s])
        where = torch.cat([torch.zeros(batch), torch.ones(batch)])
        dom = F.binary_cross_entropy_with_logits(net.domain(net.rev(both)).squeeze(1), where)
        opt.zero_grad()
        (task + dom).backward()
        opt.step()
        if step % 100 == 0:
            net.eval()
            with torch.no_grad():
                acc = (net(hx).argmax(1) == hy).float().mean().item()
            print(f"step {step} task {task.item():.3f} domain {dom.item():.3f} target accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
