"""Momentum contrast on 1-D signals; quality is measured with a k-NN probe."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(77)
LEN, CLASSES = 64, 4


def signals(n, gen):
    y = torch.randint(CLASSES, (n,), generator=gen)
    t = torch.arange(LEN) / LEN
    freq = (3 + y).float().unsqueeze(1)
    x = torch.sin(6.2832 * freq * t + 6.2832 * torch.rand(n, 1, generator=gen))
    return x + 0.9 * torch.randn(n, LEN, generator=gen), y


def augment(x):
    shift = torch.randint(LEN, (len(x), 1))
    x = x.gather(1, (torch.arange(LEN) + shift) % LEN)
    x = x * (0.7 + 0.6 * torch.rand(len(x), 1)) + 0.2 * torch.randn_like(x)
    keep = torch.rand(len(x), LEN) > 0.1
    return x * keep


class Net(nn.Module):
    def __init__(self, out=16):
        super().__init__()
        self.conv = nn.Sequential(nn.Unflatten(1, (1, LEN)), nn.Conv1d(1, 16, 9, 2, 4), nn.ReLU(),
                                  nn.Conv1d(16, 32, 9, 2, 4), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten())
        self.proj = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, out))

    def forward(self, x):
        return F.normalize(self.proj(self.conv(x)), dim=1)


class MoCo(nn.Module):
    def __init__(self, size=256, momentum=0.995, tau=0.1):
        super().__init__()
        self.q = Net()
        self.k = copy.deepcopy(self.q)
        for p in self.k.parameters():
            p.requires_grad = False
        self.m, self.tau = momentum, tau
        self.register_buffer("queue", F.normalize(torch.randn(size, 16), dim=1))
        self.ptr = 0

    @torch.no_grad()
    def _momentum(self):
        for pk, pq in zip(self.k.parameters(), self.q.parameters()):
            pk.mul_(self.m).add_(pq, alpha=1 - self.m)

    @torch.no_grad()
    def _enqueue(self, keys):
        n = len(keys)
        self.queue[self.ptr:self.ptr + n] = keys
        self.ptr = (self.ptr + n) % len(self.queue)

    def forward(self, a, b):
        q = self.q(a)
        with torch.no_grad():
            self._momentum()
            k = self.k(b)
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue.clone().t()
        logits = torch.cat([pos, neg], 1) / self.tau
        self._enqueue(k)
        # the positive sits in column 0
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


@torch.no_grad()
def knn(encoder, bank, query, k=7):
    encoder.eval()
    f, g = (F.normalize(encoder(x), dim=1) for x in (bank[0], query[0]))
    votes = bank[1][(g @ f.t()).topk(k, 1).indices]
    acc = (votes.mode(1).values == query[1]).float().mean().item()
    encoder.train()
    return acc


gen = torch.Generator().manual_seed(77)
train, test = signals(1024, gen), signals(256, gen)
moco = MoCo()
opt = torch.optim.SGD(moco.q.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=8)
print(f"knn before: {knn(moco.q.conv, train, test):.3f}")
for epoch in range(8):
    total = 0.0
    for idx in torch.randperm(1024).split(64):
        x = train[0][idx]
        loss = moco(augment(x), augment(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    sched.step()
    print(f"{epoch}: nce {total / 16:.3f}  knn {knn(moco.q.conv, train, test):.3f}")
