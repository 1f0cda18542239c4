import random

import torch


class TokenBudgetSampler:
    """Yields lists of indices; every batch holds at most `max_tokens` source+target tokens after padding."""

    def __init__(self, lengths, max_tokens, rank, world, seed=0):
        self.lengths, self.max_tokens = lengths, max_tokens
        self.rank, self.world, self.seed = rank, world, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = list(range(len(self.lengths)))
        rng = random.Random(self.seed + self.epoch)
        rng.shuffle(order)
        usable = len(order) // self.world * self.world
        mine = order[:usable][self.rank::self.world]
        # sort inside pools of a few thousand sentences, that keeps some randomness
        pools = [sorted(mine[i:i + 4096], key=self.lengths.__getitem__) for i in range(0, len(mine), 4096)]
        batches, cur, longest = [], [], 0
        for pool in pools:
            for i in pool:
                longest_new = max(longest, self.lengths[i])
                if cur and longest_new * (len(cur) + 1) > self.max_tokens:
                    batches.append(cur)
                    cur, longest_new = [], self.lengths[i]
                cur.append(i)
                longest = longest_new
        if cur:
            batches.append(cur)
        random.Random(self.seed + self.epoch + 1).shuffle(batches)
        return iter(batches)


def pad(seqs, value=0):
    out = torch.full((len(seqs), max(map(len, seqs))), value)
    for row, s in zip(out, seqs):
        row[:len(s)] = torch.tensor(s)
    return out
