"""MoCo-style pre-training on short series, then a linear probe on the frozen encoder."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(303)
DIM, QUEUE, TEMP, MOM = 16, 512, 0.15, 0.98


def series(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    t = torch.linspace(0, 1, 48)
    f = 3 + 2 * torch.rand(n, 1, generator=g)
    base = torch.sin(6.28 * (f * t + torch.rand(n, 1, generator=g)))
    shape = torch.stack([base, base.sign(), torch.asin(base * 0.999) * 0.64])[y, torch.arange(n)]
    return (shape + 0.1 * torch.randn(n, 48, generator=g)).unsqueeze(1), y


def augment(x):
    shift = int(torch.randint(0, 48, ()))
    scale = 0.7 + 0.6 * torch.rand(len(x), 1, 1)
    return torch.roll(x, shift, -1) * scale + 0.1 * torch.randn_like(x)


def encoder():
    return nn.Sequential(nn.Conv1d(1, 24, 7, 2), nn.GroupNorm(4, 24), nn.ReLU(), nn.Conv1d(24, 48, 5, 2),
                         nn.GroupNorm(4, 48), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())


class MoCo(nn.Module):
    def __init__(self):
        super().__init__()
        self.f_q = encoder()
        self.g_q = nn.Sequential(nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, DIM))
        self.f_k, self.g_k = copy.deepcopy(self.f_q), copy.deepcopy(self.g_q)
        for p in [*self.f_k.parameters(), *self.g_k.parameters()]:
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(QUEUE, DIM), dim=1))
        self.ptr = 0

    @torch.no_grad()
    def drift(self):
        for online, target in ((self.f_q, self.f_k), (self.g_q, self.g_k)):
            for a, b in zip(online.parameters(), target.parameters()):
                b.mul_(MOM).add_(a, alpha=1 - MOM)

    @torch.no_grad()
    def push(self, keys):
        idx = (self.ptr + torch.arange(len(keys))) % QUEUE
        self.queue[idx] = keys
        self.ptr = (self.ptr + len(keys)) % QUEUE

    def forward(self, view_q, view_k):
        q = F.normalize(self.g_q(self.f_q(view_q)), dim=1)
        with torch.no_grad():
            k = F.normalize(self.g_k(self.f_k(view_k)), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.T.clone()], dim=1) / TEMP
        self.push(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


x_train, y_train = series(1200, 1)
x_test, y_test = series(300, 2)

net = MoCo()
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=2e-3)
for epoch in range(6):
    total = 0.0
    for b in torch.randperm(len(x_train)).split(60):
        loss = net(augment(x_train[b]), augment(x_train[b]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        net.drift()
        total += loss.item() / 20
    print(f"contrastive epoch {epoch}: {total:.3f}")

net.f_q.eval().requires_grad_(False)
with torch.no_grad():
    h_train, h_test = net.f_q(x_train), net.f_q(x_test)
mu, sd = h_train.mean(0), h_train.std(0) + 1e-6
h_train, h_test = (h_train - mu) / sd, (h_test - mu) / sd
probe = nn.Linear(48, 3)
probe_opt = torch.optim.SGD(probe.parameters(), lr=0.2)
for _ in range(100):
    probe_opt.zero_grad()
    F.cross_entropy(probe(h_train), y_train).backward()
    probe_opt.step()
with torch.no_grad():
    print("linear probe:", (probe(h_test).argmax(1) == y_test).float().mean().item())
