# Train on packed rows: many short sums in one row, each sum sees only itself.
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

CH = "^$+=0123456789"
ID = {c: i for i, c in enumerate(CH)}
ROW = 96


def problem(rng):
    a, b = rng.randint(0, 9), rng.randint(0, 9)
    return f"^{a}+{b}=", f"{a + b}$"


def pack(rng, rows):
    """Concatenate problems until the row is full; the remainder of a row is filled with the start of a sum."""
    ids, doc, pos, target = (torch.zeros(rows, ROW, dtype=torch.long) for _ in range(4))
    for r in range(rows):
        stream, n = [], 0
        while len(stream) < ROW:
            q, a = problem(rng)
            for k, c in enumerate(q + a):
                stream.append((ID[c], n, k, ID[c] if k >= len(q) else -100))
            n += 1
        cols = torch.tensor(stream[:ROW])
        ids[r], doc[r], pos[r], target[r] = cols.unbind(1)
    return ids, doc, pos, target


class Layer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, see):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=see).transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class PackedLM(nn.Module):
    def __init__(self, d=64, h=4, n=2):
        super().__init__()
        self.tok, self.pos = nn.Embedding(len(CH), d), nn.Embedding(16, d)
        self.layers = nn.ModuleList(Layer(d, h) for _ in range(n))
        self.head = nn.Linear(d, len(CH))

    def forward(self, ids, doc=None, pos=None):
        t = ids.shape[1]
        see = torch.ones(t, t, dtype=torch.bool).tril()[None, None]
        if doc is not None:
            see = see & (doc[:, None, :, None] == doc[:, None, None, :])
        x = self.tok(ids) + self.pos(torch.arange(t) if pos is None else pos)
        for layer in self.layers:
            x = layer(x, see)
        return self.head(x)


def solve(net, q):
    ids = [ID[c] for c in q]
    with torch.no_grad():
        for _ in range(3):
            ids.append(net(torch.tensor([ids]))[0, -1].argmax().item())
            if CH[ids[-1]] == "$":
                break
    return "".join(CH[i] for i in ids[len(q):])


rng = random.Random(0)
torch.manual_seed(0)
net = PackedLM()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, total_steps=150)
for step in range(1, 151):
    ids, doc, pos, target = pack(rng, 16)
    logits = net(ids[:, :-1], doc[:, :-1], pos[:, :-1])
    loss = F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=-100)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f}")
net.eval()
every = [(f"^{a}+{b}=", f"{a + b}$") for a in range(10) for b in range(10)]
print("exact", sum(solve(net, q) == s for q, s in every) / 100)
