import random

import torch

SHOP = ("cheap solid handy sturdy useful".split(), "flimsy useless faulty ugly late".split())
FILM = ("moving clever tense funny useless".split(), "boring silly dull handy noisy".split())
COMMON = "it was a very and so rather the thing quite really this one".split()
WORDS = sorted(set(SHOP[0] + SHOP[1] + FILM[0] + FILM[1] + COMMON))
IDX = {w: i + 1 for i, w in enumerate(WORDS)}


def corpus(domain, n, seed):
    rng = random.Random(seed)
    ids, y = torch.zeros(n, 14, dtype=torch.long), torch.zeros(n, dtype=torch.long)
    for i in range(n):
        y[i] = rng.randint(0, 1)
        words = [rng.choice(COMMON) for _ in range(rng.randint(5, 11))] + [rng.choice(domain[1 - int(y[i])]) for _ in range(2)]
        rng.shuffle(words)
        ids[i, : len(words)] = torch.tensor([IDX[w] for w in words])
    return ids, y
