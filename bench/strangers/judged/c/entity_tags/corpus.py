import random

import torch

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TAG_ID = {t: i for i, t in enumerate(TAGS)}
FIRST = ["ana", "boris", "chen", "dora"]
LAST = ["silva", "petrov", "wei", "keller"]
PLACE = [["new", "york"], ["lima"], ["san", "juan"], ["oslo"]]
OTHER = "went to see met with from near left lives in today again and".split()
WORDS = ["<pad>", "<unk>"] + sorted(set(FIRST + LAST + OTHER + [w for p in PLACE for w in p]))
WORD_ID = {w: i for i, w in enumerate(WORDS)}


def sentence(rng):
    words, tags = [], []
    for _ in range(rng.randint(3, 7)):
        r = rng.random()
        if r < 0.2:
            words += [rng.choice(FIRST), rng.choice(LAST)]
            tags += ["B-PER", "I-PER"]
        elif r < 0.4:
            p = rng.choice(PLACE)
            words += p
            tags += ["B-LOC"] + ["I-LOC"] * (len(p) - 1)
        else:
            words.append(rng.choice(OTHER))
            tags.append("O")
    return words, tags


def corpus(n, seed):
    rng = random.Random(seed)
    return [sentence(rng) for _ in range(n)]


def pad_batch(batch, word_dropout=0.0, rng=None):
    width = max(len(w) for w, _ in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    gold = torch.full((len(batch), width), -1, dtype=torch.long)
    for r, (words, tags) in enumerate(batch):
        row = [WORD_ID[w] if rng is None or rng.random() >= word_dropout else WORD_ID["<unk>"] for w in words]
        ids[r, :len(words)] = torch.tensor(row)
        gold[r, :len(tags)] = torch.tensor([TAG_ID[t] for t in tags])
    return ids, gold
