"""Dates written by people ("3 march 1998") and their ISO form ("1998-03-03")."""

import datetime
import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

PAD, BOS, EOS = 0, 1, 2
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
SOURCE_CHARS = " 0123456789abcdefghijklmnopqrstuvwxyz"
TARGET_CHARS = "0123456789-"
source_ids = {c: i + 3 for i, c in enumerate(SOURCE_CHARS)}
target_ids = {c: i + 3 for i, c in enumerate(TARGET_CHARS)}
SOURCE_VOCAB = len(source_ids) + 3
TARGET_VOCAB = len(target_ids) + 3


class DatePairs(Dataset):
    def __init__(self, n, rng):
        first = datetime.date(1990, 1, 1)
        days = [first + datetime.timedelta(days=rng.randrange(20 * 365)) for _ in range(n)]
        self.pairs = [(self.write(day, rng), f"{day:%y-%m-%d}") for day in days]

    @staticmethod
    def write(day, rng):
        month = MONTHS[day.month - 1]
        if rng.random() < 0.5:
            return f"{day.day} {month} {day:%y}"
        return f"{month} {day.day} {day:%y}"

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        source, target = self.pairs[i]
        source = [source_ids[c] for c in source] + [EOS]
        target = [BOS] + [target_ids[c] for c in target] + [EOS]
        return torch.tensor(source), torch.tensor(target)


def collate(batch):
    sources, targets = zip(*batch, strict=True)
    return (
        pad_sequence(sources, batch_first=True, padding_value=PAD),
        pad_sequence(targets, batch_first=True, padding_value=PAD),
    )


def make_splits(seed, n_train=1920, n_val=256):
    rng = random.Random(seed)
    return DatePairs(n_train, rng), DatePairs(n_val, rng)
