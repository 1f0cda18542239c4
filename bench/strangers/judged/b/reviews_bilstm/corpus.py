import random

import torch

GOOD = "great lovely superb fine enjoyable bright moving clever".split()
BAD = "dull awful boring weak clumsy flat tedious messy".split()
FILL = "the a film plot actor scene was quite rather with and of it very music end".split()
ITOS = ["<pad>"] + sorted(set(GOOD + BAD + FILL + ["not"]))
STOI = {w: i for i, w in enumerate(ITOS)}


def sentence(rng):
    label = rng.random() < 0.5
    words = [rng.choice(FILL) for _ in range(rng.randint(6, 18))]
    for _ in range(rng.randint(1, 3)):
        flip = rng.random() < 0.3
        pool = (BAD if label else GOOD) if flip else (GOOD if label else BAD)
        at = rng.randrange(len(words))
        words[at:at] = (["not"] if flip else []) + [rng.choice(pool)]
    return [STOI[w] for w in words], int(label)


def make(n, seed):
    rng = random.Random(seed)
    return [sentence(rng) for _ in range(n)]


def collate(rows):
    n = torch.tensor([len(r[0]) for r in rows])
    ids = torch.zeros(len(rows), int(n.max()), dtype=torch.long)
    for i, (w, _) in enumerate(rows):
        ids[i, : len(w)] = torch.tensor(w)
    return ids, n, torch.tensor([r[1] for r in rows])
