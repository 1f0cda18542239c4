import random

import torch
from torch import nn
from torch.utils.data import DataLoader

from meters import Accuracy, Mean

GOOD = "great love perfect sturdy fast bright happy excellent".split()
BAD = "broken slow awful cheap refund dim noisy useless".split()
FILL = "the this product it was box arrived battery cable screen and very my for a".split()
VOCAB = {w: i + 1 for i, w in enumerate(GOOD + BAD + FILL)}


def reviews(n, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        label = rng.randrange(2)
        own, other = (GOOD, BAD) if label else (BAD, GOOD)
        words = rng.choices(own, k=rng.randint(2, 4)) + rng.choices(other, k=rng.randint(0, 2))
        words += rng.choices(FILL, k=rng.randint(4, 10))
        rng.shuffle(words)
        out.append((torch.tensor([VOCAB[w] for w in words]), label))
    return out


def pack(items):
    seqs, labels = zip(*items)
    offsets = torch.tensor([0] + [len(s) for s in seqs[:-1]]).cumsum(0)
    return torch.cat(seqs), offsets, torch.tensor(labels)


class BagOfWords(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.bag = nn.EmbeddingBag(len(VOCAB) + 1, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 2))

    def forward(self, tokens, offsets):
        return self.mlp(self.bag(tokens, offsets))


def run_epoch(model, loader, meters, optimizer=None):
    training = optimizer is not None
    model.train(training)
    for m in meters.values():
        m.reset()
    with torch.set_grad_enabled(training):
        for tokens, offsets, labels in loader:
            logits = model(tokens, offsets)
            loss = nn.functional.cross_entropy(logits, labels)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            meters["loss"].update(loss.item(), len(labels))
            meters["acc"].update(logits, labels)
    return {name: round(m.value(), 4) for name, m in meters.items()}


def main():
    torch.manual_seed(0)
    train = DataLoader(reviews(800, 1), batch_size=32, shuffle=True, collate_fn=pack)
    val = DataLoader(reviews(200, 2), batch_size=64, collate_fn=pack)
    model = BagOfWords()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    train_meters = {"loss": Mean(), "acc": Accuracy()}
    val_meters = {"loss": Mean(), "acc": Accuracy()}
    for epoch in range(8):
        tr = run_epoch(model, train, train_meters, opt)
        va = run_epoch(model, val, val_meters)
        print(epoch, "train", tr, "val", va)


if __name__ == "__main__":
    main()
