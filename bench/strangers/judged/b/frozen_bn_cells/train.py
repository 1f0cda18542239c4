import argparse, math, random
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F


# fine-tune a small conv stem (its BN statistics stay as "pretrained") on toy microscopy patches

def patches(n, g):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 24), torch.linspace(-1, 1, 24), indexing="ij")
    lab = torch.randint(0, 3, (n,), generator=g)
    r = 0.35 + 0.2 * torch.rand(n, generator=g)
    cx, cy = (torch.rand(2, n, generator=g) - .5) * .6
    d = torch.sqrt((xx - cx[:, None, None]) ** 2 + (yy - cy[:, None, None]) ** 2)
    disk = (d < r[:, None, None]).float()
    ring = ((d - r[:, None, None]).abs() < .1).float()
    dots = disk * (torch.rand(n, 24, 24, generator=g) > .6)
    img = torch.stack([disk, ring, dots])[lab, torch.arange(n)]
    return (img + .5 * torch.randn(n, 24, 24, generator=g))[:, None], lab


def cbr(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))


class CellNet(nn.Module):
    def __init__(self, k=3, p=.5, freeze_stats=True):
        super().__init__()
        self.stem = nn.Sequential(cbr(1, 12), cbr(12, 24))
        self.neck = nn.Sequential(cbr(24, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Sequential(nn.Dropout(p), nn.Linear(32, 32), nn.ReLU(), nn.Dropout(p), nn.Linear(32, k))
        self.freeze_stats = freeze_stats

    def train(self, mode=True):
        super().train()
        if self.freeze_stats:
            for m in self.stem.modules():
                if isinstance(m, nn.BatchNorm2d):
                    m.eval()
        return self

    def forward(self, x):
        return self.head(self.neck(self.stem(x)))


def calibrate(net, x):
    """one pass to give the stem sensible running statistics before they are frozen"""
    with torch.no_grad():
        h = x
        for blk in net.stem:
            conv, bn, act = blk
            h = conv(h)
            bn.running_mean.copy_(h.mean((0, 2, 3)))
            bn.running_var.copy_(h.var((0, 2, 3)))
            bn.eval()
            h = act(bn(h))


def run(a):
    random.seed(a.seed); np.random.seed(a.seed); torch.manual_seed(a.seed)
    g = torch.Generator().manual_seed(a.seed)
    xt, yt = patches(a.n, g)
    xv, yv = patches(a.n // 4, g)
    mu, sd = xt.mean(), xt.std()
    xt, xv = (xt - mu) / sd, (xv - mu) / sd
    net = CellNet()
    calibrate(net, xt[:256])
    opt = torch.optim.SGD(net.parameters(), lr=a.lr, momentum=.9, nesterov=True, weight_decay=1e-4)
    spe = math.ceil(a.n / a.bs)
    sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, a.epochs * spe)
    for ep in range(a.epochs):
        net.train()
        for ix in torch.randperm(a.n, generator=g).split(a.bs):
            opt.zero_grad()
            F.cross_entropy(net(xt[ix]), yt[ix]).backward()
            opt.step(); sch.step()
        net.eval()
        with torch.no_grad():
            z = torch.cat([net(b) for b in xv.split(50)])
        print(f"ep {ep} val nll {F.cross_entropy(z, yv):.3f} acc {(z.argmax(1) == yv).float().mean():.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--n", type=int, default=800); p.add_argument("--bs", type=int, default=40)
    p.add_argument("--epochs", type=int, default=5); p.add_argument("--lr", type=float, default=.03)
    p.add_argument("--seed", type=int, default=3)
    run(p.parse_args())
