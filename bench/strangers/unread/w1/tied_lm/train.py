#!/usr/bin/env python3
# word-level LSTM, tied input/output matrix, truncated BPTT with carried state
import math, random
import torch, torch.nn as nn

V, B, BPTT = 40, 10, 20

def chain(n, seed):
    r = random.Random(seed); w = 0; out = []
    for _ in range(n):
        w = (w * 5 + r.choice([1, 2, 7])) % V
        out.append(w)
    return torch.tensor(out)

def columns(ids, b):
    n = len(ids) // b
    return ids[:n * b].view(b, n).t().contiguous()      # time x batch

class LM(nn.Module):
    def __init__(self, v, d=64):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.enc = nn.Embedding(v, d)
        self.rnn = nn.LSTM(d, d, 1)
        self.dec = nn.Linear(d, v)
        self.dec.weight = self.enc.weight
        nn.init.uniform_(self.enc.weight, -0.1, 0.1)
        nn.init.zeros_(self.dec.bias)

    def forward(self, x, state=None):
        h, state = self.rnn(self.drop(self.enc(x)), state)
        return self.dec(self.drop(h)), state

def cut(state):
    return tuple(s.detach() for s in state)

def pieces(data):
    for i in range(0, len(data) - 1, BPTT):
        n = min(BPTT, len(data) - 1 - i)
        yield data[i:i + n], data[i + 1:i + 1 + n]

@torch.no_grad()
def ppl(model, data):
    model.eval()
    state, total, n = None, 0.0, 0
    for x, y in pieces(data):
        out, state = model(x, state)
        total += nn.functional.cross_entropy(out.flatten(0, 1), y.flatten(), reduction="sum").item()
        n += y.numel()
    return math.exp(total / n)

torch.manual_seed(1)
train, val = columns(chain(8000, 1), B), columns(chain(1500, 2), B)
model = LM(V)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    model.train()
    state = None
    for x, y in pieces(train):
        if state is not None:
            state = cut(state)
        out, state = model(x, state)
        loss = nn.functional.cross_entropy(out.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
    print(epoch, f"{loss.item():.3f}", f"val ppl {ppl(model, val):.2f}")
