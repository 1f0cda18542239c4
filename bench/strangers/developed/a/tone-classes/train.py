"""Classify short synthetic sounds (sine, square, saw, chirp). Functional style: every piece is a
plain function, configured once with functools.partial."""
from functools import partial
from itertools import islice

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

RATE, N = 256, 128


def tone(kind, gen):
    t = torch.arange(N) / RATE
    f = 8 + 24 * torch.rand((), generator=gen)
    ph = f * t + torch.rand((), generator=gen)
    wave = {
        0: lambda: torch.sin(2 * torch.pi * ph),
        1: lambda: torch.sign(torch.sin(2 * torch.pi * ph)),
        2: lambda: 2 * (ph % 1.0) - 1,
        3: lambda: torch.sin(2 * torch.pi * (ph + 20 * t * t)),
    }[kind]()
    return wave + 0.4 * torch.randn(N, generator=gen)


def dataset(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(4, (n,), generator=gen)
    x = torch.stack([tone(int(k), gen) for k in y]).unsqueeze(1)
    return x, y


def stream(x, y, batch, shuffle, gen=None):
    order = torch.randperm(len(x), generator=gen) if shuffle else torch.arange(len(x))
    for idx in order.split(batch):
        yield x[idx], y[idx]


def make_net(width):
    conv = lambda i, o, s: nn.Sequential(nn.Conv1d(i, o, 9, stride=s, padding=4), nn.BatchNorm1d(o), nn.ReLU())
    return nn.Sequential(conv(1, width, 2), conv(width, 2 * width, 2), conv(2 * width, 2 * width, 2),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(2 * width, 4))


def learn(batch, *, net, opt, sched, smoothing):
    x, y = batch
    opt.zero_grad(set_to_none=True)
    loss = F.cross_entropy(net(x), y, label_smoothing=smoothing)
    loss.backward()
    opt.step()
    sched.step()
    return loss.item() * len(y)


@torch.no_grad()
def correct(batch, *, net):
    x, y = batch
    return (net(x).argmax(1) == y).sum().item()


def run(epochs=10, batch=32, lr=0.01, seed=8):
    torch.manual_seed(seed)
    gen = torch.Generator().manual_seed(seed)
    (xt, yt), (xv, yv) = dataset(480, seed), dataset(160, seed + 1)

    net = make_net(12)
    opt = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=1e-3)
    sched = CosineAnnealingLR(opt, T_max=epochs, eta_min=lr / 100)

    step = partial(learn, net=net, opt=opt, sched=sched, smoothing=0.05)
    score = partial(correct, net=net)
    train_batches = partial(stream, xt, yt, batch, True, gen)
    valid_batches = partial(stream, xv, yv, 80, False)

    for epoch in range(epochs):
        net.train()
        loss = sum(map(step, train_batches())) / len(xt)
        net.eval()
        acc = sum(map(score, valid_batches())) / len(xv)
        yield epoch, loss, acc, opt.param_groups[0]["lr"]


if __name__ == "__main__":
    for epoch, loss, acc, lr in islice(run(), 0, None):
        print(f"{epoch:2d}  loss {loss:.3f}  acc {acc:.3f}  lr {lr:.4f}")
