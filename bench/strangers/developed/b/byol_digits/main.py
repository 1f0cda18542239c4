"""Self-supervised digits: BYOL without labels, then a linear probe on frozen features."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

from ssl_model import BYOL


def view(x, gen):
    """A random shift by up to one pixel and pixel noise; both views of a training image are made by this."""
    padded = F.pad(x, (1, 1, 1, 1))
    dy, dx = torch.randint(0, 3, (2, len(x)), generator=gen)
    rows = dy[:, None] + torch.arange(8)
    cols = dx[:, None] + torch.arange(8)
    n = torch.arange(len(x))[:, None, None]
    out = padded[n, 0, rows[:, :, None], cols[:, None, :]][:, None]
    return out + 0.1 * torch.randn(out.shape, generator=gen)


def encoder():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    )


def pretrain(net, x, gen, epochs, bs=128):
    opt = torch.optim.Adam(list(net.online.parameters()) + list(net.predict.parameters()), 2e-3)
    net.train()
    for ep in range(epochs):
        order = torch.randperm(len(x), generator=gen)
        for idx in order[:len(order) // bs * bs].split(bs):
            loss = net(view(x[idx], gen), view(x[idx], gen))
            opt.zero_grad()
            loss.backward()
            opt.step()
            net.move_target()
    print(f"pretraining finished, loss {loss.item():.4f}")


def probe(enc, xtr, ytr, xte, yte, steps=200):
    enc.eval()
    with torch.no_grad():
        ftr, fte = enc(xtr), enc(xte)
    mu, sd = ftr.mean(0), ftr.std(0) + 1e-6
    ftr, fte = (ftr - mu) / sd, (fte - mu) / sd
    lin = nn.Linear(ftr.shape[1], 10)
    opt = torch.optim.SGD(lin.parameters(), 0.5, momentum=0.9, weight_decay=1e-4)
    for _ in range(steps):
        opt.zero_grad()
        F.cross_entropy(lin(ftr), ytr).backward()
        opt.step()
    with torch.no_grad():
        return (lin(fte).argmax(1) == yte).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(50)
    gen = torch.Generator().manual_seed(50)
    d = load_digits()
    x, y = torch.tensor(d.images / 16.0, dtype=torch.float32)[:, None], torch.tensor(d.target)
    order = torch.randperm(len(y), generator=gen)
    tr, te = order[:1300], order[1300:]
    net = BYOL(encoder(), 128)
    print(f"probe on random features {probe(net.encoder, x[tr], y[tr], x[te], y[te]):.3f}")
    pretrain(net, x[tr], gen, epochs=8)
    print(f"probe after BYOL         {probe(net.encoder, x[tr], y[tr], x[te], y[te]):.3f}")
