import random
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader

from corpus import TAGS, WORDS, corpus, pad_batch


class Tagger(nn.Module):
    def __init__(self, dim=24, hidden=32):
        super().__init__()
        self.lookup = nn.Embedding(len(WORDS), dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, ids):
        states, _ = self.lstm(self.lookup(ids))
        return self.emit(states)


def tag_loss(scores, gold):
    return nn.functional.cross_entropy(scores.flatten(0, 1), gold.flatten())


def token_accuracy(tagger, loader):
    tagger.eval()
    good = seen = 0
    with torch.no_grad():
        for ids, gold in loader:
            real = gold >= 0
            good += (tagger(ids).argmax(-1)[real] == gold[real]).sum().item()
            seen += real.sum().item()
    return good / seen


def main(seed=4, epochs=4):
    torch.manual_seed(seed)
    noisy = partial(pad_batch, word_dropout=0.05, rng=random.Random(seed))
    train = DataLoader(corpus(400, seed=10), batch_size=20, shuffle=True, collate_fn=noisy)
    dev = DataLoader(corpus(100, seed=20), batch_size=50, collate_fn=pad_batch)

    tagger = Tagger()
    adam = torch.optim.Adam(tagger.parameters(), lr=5e-3)
    for ep in range(epochs):
        tagger.train()
        for ids, gold in train:
            adam.zero_grad()
            loss = tag_loss(tagger(ids), gold)
            loss.backward()
            adam.step()
        print(f"epoch {ep}: loss {loss.item():.4f}, dev token acc {token_accuracy(tagger, dev):.4f}")


if __name__ == "__main__":
    main()
