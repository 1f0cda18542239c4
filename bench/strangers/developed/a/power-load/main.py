import argparse, math, random
import numpy as np, torch as th
from torch import nn

P = argparse.ArgumentParser()
P.add_argument('--H', type=int, default=32)
P.add_argument('--ctx', type=int, default=48)
P.add_argument('--hor', type=int, default=6)
P.add_argument('--clip', type=float, default=0.5)
P.add_argument('--lr', type=float, default=5e-3)
P.add_argument('--iters', type=int, default=120)
P.add_argument('--bs', type=int, default=32)
A = P.parse_args()

random.seed(0); np.random.seed(0); th.manual_seed(0)


def series(n=4000):
    t = np.arange(n)
    day = np.sin(2 * np.pi * t / 24)
    week = 0.4 * np.sin(2 * np.pi * t / 168)
    spikes = (np.random.rand(n) < 0.01) * np.random.exponential(3.0, n)
    return (day + week + 0.1 * np.random.randn(n) + spikes).astype('float32')


s = series()
cut = int(0.8 * len(s))
mu, sd = s[:cut].mean(), s[:cut].std()
s = th.from_numpy((s - mu) / sd)
tr, te = s[:cut], s[cut:]


def batches(x, n):
    while n > 0:
        i = th.randint(0, len(x) - A.ctx - A.hor, (A.bs,))
        w = th.stack([x[j:j + A.ctx + A.hor] for j in i.tolist()])
        yield w[:, :A.ctx, None], w[:, A.ctx:]
        n -= 1


class F_(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(1, A.H, batch_first=True)
        self.o = nn.Linear(A.H, A.hor)

    def forward(self, x):
        h, _ = self.r(x)
        return self.o(h[:, -1])


@th.no_grad()
def test(f):
    f.eval()
    st = range(0, len(te) - A.ctx - A.hor, A.hor)
    x = th.stack([te[j:j + A.ctx] for j in st])[..., None]
    y = th.stack([te[j + A.ctx:j + A.ctx + A.hor] for j in st])
    r = (f(x) - y).abs().mean().item() * float(sd)
    f.train()
    return r


f = F_()
opt = th.optim.RMSprop(f.parameters(), lr=A.lr)
tape = []
for k, (x, y) in enumerate(batches(tr, A.iters), 1):
    opt.zero_grad()
    l = (f(x) - y).pow(2).mean()
    l.backward()
    opt.step()
    gn = nn.utils.clip_grad_norm_(f.parameters(), A.clip)
    tape.append((l.item(), gn.item()))
    if k % 40 == 0:
        a = np.array(tape[-40:])
        print(f'{k:4d} mse {a[:, 0].mean():.3f} |g| {a[:, 1].mean():.2f} max|g| {a[:, 1].max():.2f} mae {test(f):.3f}')
