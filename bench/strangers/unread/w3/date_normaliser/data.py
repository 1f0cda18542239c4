import random

import torch
from torch.nn.utils.rnn import pad_sequence

from vocab import Vocab

MONTHS = "january february march april may june july august september october november december".split()


def make_pairs(n, seed):
    rnd = random.Random(seed)
    pairs = []
    for _ in range(n):
        d, m, y = rnd.randint(1, 28), rnd.randint(1, 12), rnd.randint(1950, 2030)
        src = rnd.choice([f"{d} {MONTHS[m - 1]} {y}", f"{MONTHS[m - 1][:3]} {d} {y}", f"{d}.{m}.{y}"])
        tgt = f"{d}/{m}/{y}"
        pairs.append((src, tgt))
    return pairs


def build_vocab(pairs):
    return Vocab([t for p in pairs for t in p])


class Collate:
    def __init__(self, vocab):
        self.v = vocab

    def __call__(self, pairs):
        src = [torch.tensor(self.v.encode(s)) for s, _ in pairs]
        tgt = [torch.tensor(self.v.encode(t)) for _, t in pairs]
        lengths = torch.tensor([len(s) for s in src])
        pad = dict(batch_first=True, padding_value=self.v.pad)
        return pad_sequence(src, **pad), lengths, pad_sequence(tgt, **pad)
