import os
import random
import tempfile

import numpy as np
import torch
from torch import nn

from session import Session

EPOCHS, BATCH, N = 4, 25, 500


def gait(n, seed):
    g = np.random.default_rng(seed)
    y = g.integers(0, 3, n)
    t = np.linspace(0, 4, 40)
    x = np.sin(2 * np.pi * t[None] * (0.8 + 0.3 * y[:, None]) + g.uniform(0, 6, (n, 1)))
    return torch.tensor(x + 0.2 * g.normal(size=x.shape), dtype=torch.float32).unsqueeze(1), torch.tensor(y)


def order_of(epoch):
    return torch.randperm(N, generator=torch.Generator().manual_seed(1000 + epoch)).split(BATCH)


def jitter(x):
    scale = torch.from_numpy(np.random.uniform(0.9, 1.1, (len(x), 1, 1))).float()
    return scale * x + 0.05 * torch.randn_like(x) * (random.random() < 0.5)


def work(path, x, y, die_at=None):
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(1, 12, 7), nn.BatchNorm1d(12), nn.ReLU(), nn.AdaptiveMaxPool1d(4),
                        nn.Flatten(), nn.Dropout(0.2), nn.Linear(48, 3))
    s = Session(net, total_steps=EPOCHS * N // BATCH, path=path)
    if s.load():
        print(f"  picked up at epoch {s.at.epoch} batch {s.at.batch}")
    while s.at.epoch < EPOCHS:
        net.train()
        plan = order_of(s.at.epoch)
        while s.at.batch < len(plan):
            idx = plan[s.at.batch]
            s.opt.zero_grad()
            loss = nn.functional.cross_entropy(net(jitter(x[idx])), y[idx])
            loss.backward()
            s.opt.step()
            s.sched.step()
            s.at.batch += 1
            s.at.step += 1
            if s.at.step % 10 == 0:
                s.save()
            if s.at.step == die_at:
                return None
        s.at.epoch, s.at.batch = s.at.epoch + 1, 0
    return net


x, y = gait(N, 1)
xv, yv = gait(150, 2)
with tempfile.TemporaryDirectory() as d:
    straight = work(os.path.join(d, "a.pt"), x, y)
    work(os.path.join(d, "b.pt"), x, y, die_at=37)
    resumed = work(os.path.join(d, "b.pt"), x, y)
same = all(torch.equal(a, b) for a, b in zip(straight.state_dict().values(), resumed.state_dict().values()))
straight.eval()
with torch.no_grad():
    acc = (straight(xv).argmax(1) == yv).float().mean().item()
print("val accuracy", round(acc, 3), "| interrupted run identical:", same)
