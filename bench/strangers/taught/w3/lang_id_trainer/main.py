import logging
import random
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trainer import Trainer

LANGS = {"aa": "aeioulmnrs", "bb": "aouktprshj", "cc": "eiydgvwzsb", "dd": "aeouqxcmnl"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def trigrams(lang, rng, n=30):
    word = "".join(rng.choice(LANGS[lang]) if rng.random() < 0.55 else rng.choice(LETTERS) for _ in range(n))
    v = torch.zeros(1024)
    for a, b in zip(word, word[1:]):
        v[(ord(a) * 31 + ord(b)) % 1024] += 1
    return v


def dataset(n, seed):
    rng = random.Random(seed)
    ys = [rng.randrange(len(LANGS)) for _ in range(n)]
    xs = torch.stack([trigrams(list(LANGS)[y], rng) for y in ys])
    return TensorDataset(xs, torch.tensor(ys))


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(3)
    train = DataLoader(dataset(1000, 1), 32, shuffle=True)
    val = DataLoader(dataset(300, 2), 100)
    test = DataLoader(dataset(300, 3), 100)
    model = nn.Sequential(nn.Linear(1024, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, len(LANGS)))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    with tempfile.TemporaryDirectory() as out:
        tr = Trainer(model, opt, nn.CrossEntropyLoss(), out, name="langid")
        best = tr.fit(train, val, epochs=12)
        print(f"best val {best:.4f}, val of the loaded weights {tr.accuracy(val):.4f}, test {tr.accuracy(test):.4f}")


if __name__ == "__main__":
    main()
