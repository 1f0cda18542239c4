import json
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from chat import IGNORE, PAD, VOCAB, ChatDataset, collate

ANIMALS = "cat dog owl fox hen cow bee ant bat elk".split()
NOISES = "meow woof hoot yelp cluck moo buzz tick squeak bugle".split()


def corpus(n, seed):
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        k = rng.randrange(len(ANIMALS))
        ask = rng.choice(["what does the {} say?", "tell me the noise of a {}."]).format(ANIMALS[k])
        lines.append(json.dumps({"messages": [
            {"role": "system", "content": "be brief."},
            {"role": "user", "content": ask},
            {"role": "assistant", "content": f"{NOISES[k]}!"},
        ]}))
    return lines


class TinyLM(nn.Module):
    def __init__(self, d=64, heads=4, layers=2, max_len=96):
        super().__init__()
        self.tok = nn.Embedding(len(VOCAB), d, padding_idx=PAD)
        self.pos = nn.Embedding(max_len, d)
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(d, len(VOCAB))

    def forward(self, ids):
        t = ids.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        h = self.tok(ids) + self.pos(torch.arange(t))
        return self.out(self.enc(h, mask=mask, is_causal=True))


def lm_loss(logits, labels):
    flat, gold = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    summed = F.cross_entropy(flat, gold, ignore_index=IGNORE, reduction="sum")
    return summed / (gold != IGNORE).sum().clamp(min=1)


torch.manual_seed(8)
train = DataLoader(ChatDataset(corpus(400, 1)), batch_size=25, shuffle=True, collate_fn=collate)
val = DataLoader(ChatDataset(corpus(60, 2)), batch_size=30, collate_fn=collate)
model = TinyLM()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)

for epoch in range(4):
    model.train()
    for ids, labels in train:
        loss = lm_loss(model(ids), labels)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    model.eval()
    with torch.no_grad():
        v = sum(lm_loss(model(i), l).item() for i, l in val) / len(val)
    print(f"epoch {epoch} loss {loss.item():.4f} val {v:.4f}")
