import datetime
import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from vocab import PAD, encode

FORMATS = ["%d %B %Y", "%b %d, %Y", "%A, %d %b %Y", "%d.%m.%Y"]


class Dates(Dataset):
    """'3 may 1998' -> '1998-05-03', or 'may 98' if the day is not needed"""

    def __init__(self, n, seed):
        r = random.Random(seed)
        self.pairs = []
        for _ in range(n):
            d = datetime.date(1950, 1, 1) + datetime.timedelta(days=r.randrange(36500))
            src = d.strftime(r.choice(FORMATS))
            tgt = d.isoformat() if r.random() < 0.7 else d.strftime("%b %y")
            if len(tgt) < 10:
                src = "short " + src
            self.pairs.append((src, tgt))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        src, tgt = self.pairs[i]
        return torch.tensor(encode(src, eos=True)), torch.tensor(encode(tgt, bos=True))


def collate(batch):
    src, tgt = zip(*batch)
    return pad_sequence(src, True, PAD), pad_sequence(tgt, True, PAD)
