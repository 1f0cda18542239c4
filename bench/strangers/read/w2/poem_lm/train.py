"""Answer completion with a tiny tied-weight LM. The tokenizer has no pad symbol, so EOS doubles as padding;
labels are built from the true lengths."""
import random

import torch
import torch.nn.functional as F
from torch import nn

CHARS = "abcdefghijklmnopqrstuvwxyz >"
EOS = 0
STOI = {c: i + 1 for i, c in enumerate(CHARS)}
ITOS = {i: c for c, i in STOI.items()}
V = len(CHARS) + 1
COLOURS = {"sea": "blue", "grass": "green", "blood": "red", "snow": "white", "coal": "black", "lemon": "yellow"}
OPENINGS = ["", "so ", "well ", "tell me "]
TEMPLATES = ["the colour of {}", "{} looks", "paint me some {}", "they say {} is", "how would {} appear"]


def examples():
    return [(o + t.format(k) + ">", v) for o in OPENINGS for t in TEMPLATES for k, v in COLOURS.items()]


def to_batch(pairs):
    rows = []
    for prompt, answer in pairs:
        p = [STOI[c] for c in prompt]
        a = [STOI[c] for c in answer] + [EOS]
        rows.append((p + a, len(p)))
    width = max(len(ids) for ids, _ in rows)
    ids = torch.full((len(rows), width), EOS)
    labels = torch.full((len(rows), width), -100)
    for r, (seq, n_prompt) in enumerate(rows):
        ids[r, : len(seq)] = torch.tensor(seq)
        labels[r, n_prompt: len(seq)] = ids[r, n_prompt: len(seq)]
    return ids, labels


class TiedLM(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.emb = nn.Embedding(V, d)
        self.rnn = nn.GRU(d, d, num_layers=2, batch_first=True)
        self.proj = nn.Linear(d, d)
        self.out = nn.Linear(d, V)
        nn.init.normal_(self.emb.weight, std=0.2)
        self.out.weight = self.emb.weight

    def forward(self, ids):
        return self.out(self.proj(self.rnn(self.emb(ids))[0]))


def loss_fn(model, batch):
    ids, labels = batch
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


@torch.no_grad()
def complete(model, prompt, limit=20):
    ids = [STOI[c] for c in prompt]
    n = len(ids)
    while len(ids) - n < limit:
        nxt = model(torch.tensor([ids]))[0, -1].argmax().item()
        if nxt == EOS:
            break
        ids.append(nxt)
    return "".join(ITOS[i] for i in ids[n:])


torch.manual_seed(6)
rng = random.Random(6)
pairs = examples()
rng.shuffle(pairs)
train, held = pairs[:95], pairs[95:]
model = TiedLM()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
for epoch in range(30):
    model.train()
    rng.shuffle(train)
    for k in range(0, len(train), 8):
        loss = loss_fn(model, to_batch(train[k:k + 8]))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    if epoch % 10 == 9:
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch} train {loss.item():.4f} held-out {loss_fn(model, to_batch(held)).item():.4f}")
model.eval()
for prompt, answer in held[:4]:
    print(repr(prompt), "->", complete(model, prompt), "| expected", answer)
