import random

import torch

TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
FIRST, LAST = ["anna", "otto", "mina", "karl"], ["berg", "stein", "wolf", "klee"]
LOC = ["bonn", "ulm", "trier", "jena"]
REST = "the meeting in went well and then we met again at noon with wolf packs".split()


def sentence(rng):
    w, t = [], []
    for _ in range(rng.randint(3, 12)):
        r = rng.random()
        if r < 0.15:
            w += [rng.choice(FIRST), rng.choice(LAST)]
            t += [1, 2]
        elif r < 0.3:
            w.append(rng.choice(LOC))
            t.append(3)
        else:
            w.append(rng.choice(REST))
            t.append(0)
    return w, t


def corpus(n, seed):
    rng = random.Random(seed)
    return [sentence(rng) for _ in range(n)]


class Batcher:
    """Sorts by length, cuts into batches, shuffles the batches: little padding, random order."""

    def __init__(self, sents, vocab, size, shuffle):
        self.size, self.shuffle = size, shuffle
        self.rows = sorted(((torch.tensor([vocab.get(x, 1) for x in w]), torch.tensor(t)) for w, t in sents),
                           key=lambda r: len(r[0]))

    def __len__(self):
        return -(-len(self.rows) // self.size)

    def __iter__(self):
        starts = list(range(0, len(self.rows), self.size))
        if self.shuffle:
            random.shuffle(starts)
        for s in starts:
            part = self.rows[s:s + self.size]
            n = max(len(a) for a, _ in part)
            x, y = torch.zeros(len(part), n, dtype=torch.long), torch.zeros(len(part), n, dtype=torch.long)
            mask = torch.zeros(len(part), n, dtype=torch.bool)
            for i, (a, b) in enumerate(part):
                x[i, :len(a)], y[i, :len(b)], mask[i, :len(a)] = a, b, True
            yield x, y, mask
