import random

import torch

PAD, SEP, EOS, FIRST, VOCAB = 0, 1, 2, 3, 20
IGNORE = -100


def examples(n, seed, shift):
    """prompt SEP answer EOS, the answer is every symbol moved by `shift` in the alphabet."""
    r = random.Random(seed)
    k = VOCAB - FIRST
    rows = []
    for _ in range(n):
        p = [r.randrange(k) for _ in range(r.randint(3, 9))]
        rows.append(([FIRST + c for c in p] + [SEP], [FIRST + (c + shift) % k for c in p] + [EOS]))
    return rows


def collate(rows):
    width = max(len(p) + len(a) for p, a in rows)
    ids = torch.full((len(rows), width), PAD)
    labels = torch.full((len(rows), width), IGNORE)
    for i, (p, a) in enumerate(rows):
        ids[i, :len(p) + len(a)] = torch.tensor(p + a)
        labels[i, len(p):len(p) + len(a)] = torch.tensor(a)
    return ids, labels
