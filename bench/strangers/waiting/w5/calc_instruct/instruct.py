import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(0)

CHARS = "0123456789+-= abcdefghijklmnopqrstuvwxyz?:."
PAD, EOS = 0, 1
stoi = {c: i + 2 for i, c in enumerate(CHARS)}
itos = {i: c for c, i in stoi.items()}
V = len(stoi) + 2
CTX = 48


def encode(s):
    return [stoi[c] for c in s]


def example():
    a, b = random.randint(0, 9), random.randint(0, 9)
    wording = random.choice(["what is {}{}{}? answer:", "please compute {}{}{}. answer:", "{}{}{}? answer:"])
    op = random.choice("+-")
    res = a + b if op == "+" else a - b
    return wording.format(a, op, b), " " + str(res)


def make_batch(n):
    """Left padded: generation then always continues at the right edge, for training and sampling alike."""
    xs, ys = [], []
    for _ in range(n):
        prompt, answer = example()
        p = encode(prompt)
        ids = p + encode(answer) + [EOS]
        ids = [PAD] * (CTX - len(ids)) + ids
        labels = list(ids)
        labels[:len(p)] = [-100] * len(p)
        labels = [-100 if t == PAD else t for t in labels]
        xs.append(ids)
        ys.append(labels)
    return torch.tensor(xs), torch.tensor(ys)


class Layer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.att = nn.MultiheadAttention(d, h, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, mask):
        y = self.ln1(x)
        x = x + self.att(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.ff(self.ln2(x))


class TinyGPT(nn.Module):
    def __init__(self, d=96, h=4, n=3):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, d), nn.Embedding(CTX, d)
        self.layers = nn.ModuleList([Layer(d, h) for _ in range(n)])
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, V)

    def forward(self, ids):
        t = ids.size(1)
        # pads are an ordinary (never predicted) token, the model learns to skip them
        x = self.tok(ids) + self.pos(torch.arange(CTX - t, CTX, device=ids.device))
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool, device=ids.device), 1)
        for l in self.layers:
            x = l(x, mask)
        return self.head(self.ln(x))


@torch.no_grad()
def exact_match(model, n=50):
    model.eval()
    ok = 0
    for _ in range(n):
        prompt, answer = example()
        gold = encode(answer) + [EOS]
        p = encode(prompt)
        room = CTX - len(p) - len(gold)
        ids = torch.tensor([[PAD] * room + p + gold])
        pred = model(ids[:, :-1])[0, -len(gold):].argmax(-1).tolist()
        ok += pred == gold
    model.train()
    return ok / n


model = TinyGPT()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(200):
    x, y = make_batch(32)
    logits = model(x[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, V), y[:, 1:].reshape(-1), ignore_index=-100)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    if step % 50 == 0:
        print(step, round(loss.item(), 3), "exact", exact_match(model))
print("exact match", exact_match(model, 100))
