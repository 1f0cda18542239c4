import datetime
import random

import torch
from torch.nn.utils.rnn import pad_sequence


def sample_pairs(n, seed):
    """n different dates, as (iso form, written form)."""
    days = random.Random(seed).sample(range(700_000, 740_000), n)
    pairs = []
    for day in days:
        d = datetime.date.fromordinal(day)
        pairs.append((d.strftime("%Y-%m-%d"), f"{d.day} {d.strftime('%B').lower()} {d.year}"))
    return pairs


def collate_with(vocab):
    def collate(batch):
        src = [torch.tensor(vocab.encode(a)) for a, _ in batch]
        tgt = [torch.tensor(vocab.encode(b)) for _, b in batch]
        src = pad_sequence(src, batch_first=True, padding_value=vocab.pad)
        tgt = pad_sequence(tgt, batch_first=True, padding_value=vocab.pad)
        return src, tgt[:, :-1], tgt[:, 1:]

    return collate
