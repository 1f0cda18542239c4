import datetime as dt
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from model import Seq2Seq
from vocab import BOS, PAD, Vocab

random.seed(1)
torch.manual_seed(1)


def pair():
    d = dt.date(1950, 1, 1) + dt.timedelta(days=random.randrange(27000))
    src = d.strftime(random.choice(["%d %B %Y", "%d.%m.%y", "%A, %d %b %Y", "%B %d"]))
    tgt = d.strftime("%m-%d") if src[0].isalpha() and "," not in src else d.isoformat()
    return src.lower(), tgt


pairs = sorted({pair() for _ in range(2200)})
random.shuffle(pairs)
train_pairs, dev_pairs = pairs[:1800], pairs[1800:]
sv, tv = Vocab([a for a, _ in train_pairs]), Vocab([b for _, b in train_pairs])
pad_id = tv.stoi[PAD]


def collate(batch):
    src = pad_sequence([torch.tensor(sv.encode(a)) for a, _ in batch], True, sv.stoi[PAD])
    tgt = pad_sequence([torch.tensor(tv.encode(b)) for _, b in batch], True, pad_id)
    return src, tgt


train_dl = DataLoader(train_pairs, 64, shuffle=True, collate_fn=collate)
dev_dl = DataLoader(dev_pairs, 128, collate_fn=collate)

model = Seq2Seq(len(sv), len(tv), pad_id)
criterion = nn.CrossEntropyLoss(ignore_index=0)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)


@torch.no_grad()
def exact_match():
    model.eval()
    ok = n = 0
    for src, tgt in dev_dl:
        mem, state, mask = model.encode(src)
        tok = torch.full((len(src), 1), tv.stoi[BOS])
        outs = []
        for _ in range(12):
            logits, state = model.decode(tok, mem, state, mask)
            tok = logits.argmax(-1)
            outs.append(tok)
        for hyp, ref in zip(torch.cat(outs, 1).tolist(), tgt[:, 1:].tolist()):
            ok += tv.decode(hyp) == tv.decode(ref)
            n += 1
    return ok / n


for epoch in range(8):
    model.train()
    total = 0.0
    for src, tgt in train_dl:
        logits = model(src, tgt[:, :-1])
        loss = criterion(logits.reshape(-1, len(tv)), tgt[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(train_dl):.4f} exact {exact_match():.3f}")
