import math
import random

import torch
import torch.nn as nn

random.seed(2)
torch.manual_seed(2)
BPTT, BATCH, CLIP = 20, 20, 0.25
lr = 5.0

subjects, verbs = "cat dog bird fox king child".split(), "sees likes hears finds".split()
adjs, places = "old small red quick".split(), "house garden river wood".split()


def sentence():
    s = random.choice(subjects)
    return ["the", random.choice(adjs), s, random.choice(verbs), "the", random.choice(subjects), "in", "the",
            places[subjects.index(s) % 4], "<eos>"]


def ids(n, vocab):
    return torch.tensor([vocab[w] for _ in range(n) for w in sentence()])


words = sorted(set(subjects + verbs + adjs + places + ["the", "in", "<eos>"]))
vocab = {w: i for i, w in enumerate(words)}


def batchify(data, bsz):
    n = data.size(0) // bsz
    return data[: n * bsz].view(bsz, n).t().contiguous()


train, valid = batchify(ids(1600, vocab), BATCH), batchify(ids(300, vocab), 10)


class RNNModel(nn.Module):
    def __init__(self, n, d=48):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.encoder = nn.Embedding(n, d)
        self.rnn = nn.LSTM(d, d)
        self.decoder = nn.Linear(d, n)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, x, h):
        out, h = self.rnn(self.drop(self.encoder(x)), h)
        return self.decoder(self.drop(out)).view(-1, self.decoder.out_features), h


def get_batch(source, i):
    n = min(BPTT, len(source) - 1 - i)
    return source[i:i + n], source[i + 1:i + 1 + n].view(-1)


model, criterion = RNNModel(len(words)), nn.CrossEntropyLoss()


def evaluate():
    model.eval()
    total, h = 0.0, None
    with torch.no_grad():
        for i in range(0, valid.size(0) - 1, BPTT):
            x, y = get_batch(valid, i)
            out, h = model(x, h)
            total += len(x) * criterion(out, y).item()
    return total / (len(valid) - 1)


best = None
for epoch in range(1, 9):
    model.train()
    h, total = None, 0.0
    for k, i in enumerate(range(0, train.size(0) - 1, BPTT)):
        x, y = get_batch(train, i)
        model.zero_grad()
        if h is not None:
            h = tuple(s.detach() for s in h)
        out, h = model(x, h)
        loss = criterion(out, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(p.grad, alpha=-lr)
        total += loss.item()
    val = evaluate()
    print(f"epoch {epoch} lr {lr:g} train {total / (k + 1):.3f} valid ppl {math.exp(val):.2f}")
    if best is None or val < best:
        best = val
    else:
        lr /= 4.0
