import random

import torch


class TokenBudgetBatches:
    """Batches of similar length with at most `budget` tokens (padding included)."""

    def __init__(self, lengths, budget, rank=0, world=1, seed=0):
        self.lengths, self.budget, self.seed, self.epoch = lengths, budget, seed, 0
        self.mine = list(range(rank, len(lengths), world))

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        rng = random.Random(self.seed + self.epoch)
        ids = sorted(self.mine, key=lambda i: self.lengths[i] + rng.random())
        batches, cur, longest = [], [], 0
        for i in ids:
            longest = max(longest, self.lengths[i])
            if cur and longest * (len(cur) + 1) > self.budget:
                batches.append(cur)
                cur, longest = [], self.lengths[i]
            cur.append(i)
        batches.append(cur)
        rng.shuffle(batches)
        yield from batches


def pad_batch(rows):
    width = max(len(r) for r, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for k, (r, _) in enumerate(rows):
        ids[k, : len(r)] = torch.tensor(r)
    return ids, torch.tensor([s for _, s in rows])
