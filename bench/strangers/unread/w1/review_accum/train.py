"""Sentiment tagging per token with gradient accumulation; the loss is averaged over tokens of the whole update."""
from itertools import islice

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

IGNORE = -100


def make_reviews(n, seed, vocab=80):
    g = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(n):
        length = int(torch.randint(4, 18, (1,), generator=g))
        words = torch.randint(1, vocab, (length,), generator=g)
        labels = (words + words.roll(1)).remainder(3)
        rows.append((words, labels))
    return rows


def collate(rows):
    words, labels = zip(*rows)
    return pad_sequence(words, True, 0), pad_sequence(labels, True, IGNORE)


class Tagger(nn.Module):
    def __init__(self, vocab=80, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.out = nn.Linear(2 * dim, 3)

    def forward(self, words):
        e = self.emb(words)
        c = F.relu(self.conv(e.transpose(1, 2))).transpose(1, 2)
        return self.out(torch.cat([e, c], -1))


def groups(loader, size):
    it = iter(loader)
    while chunk := list(islice(it, size)):
        yield chunk


def update(model, opt, chunk):
    n_tokens = sum((labels != IGNORE).sum().item() for _, labels in chunk)
    opt.zero_grad()
    value = 0.0
    for words, labels in chunk:
        loss = F.cross_entropy(model(words).flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum")
        (loss / n_tokens).backward()
        value += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    return value, n_tokens


@torch.no_grad()
def accuracy(model, loader):
    was = model.training
    model.eval()
    good = total = 0
    for words, labels in loader:
        mask = labels != IGNORE
        good += (model(words).argmax(-1) == labels)[mask].sum().item()
        total += mask.sum().item()
    model.train(was)
    return good / total


if __name__ == "__main__":
    torch.manual_seed(1)
    train = DataLoader(make_reviews(610, 1), batch_size=8, shuffle=True, collate_fn=collate)
    val = DataLoader(make_reviews(150, 2), batch_size=50, collate_fn=collate)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for epoch in range(6):
        total = tokens = 0
        for chunk in groups(train, 4):
            v, n = update(model, opt, chunk)
            total, tokens = total + v, tokens + n
        print(f"{epoch} loss {total / tokens:.3f} val acc {accuracy(model, val):.3f}")
