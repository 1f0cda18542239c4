import random

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

PAD, BOS, EOS, FIRST = 0, 1, 2, 3
VOCAB = 24


class ReversedSentences(Dataset):
    """Toy language pair: the target is the source reversed, every symbol mapped by a fixed substitution."""

    def __init__(self, n, seed, max_len=14):
        r = random.Random(seed)
        sub = list(range(FIRST, VOCAB))
        random.Random(0).shuffle(sub)
        self.pairs = []
        for _ in range(n):
            s = [r.randrange(FIRST, VOCAB) for _ in range(r.randint(2, max_len))]
            self.pairs.append((s, [sub[t - FIRST] for t in reversed(s)]))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        s, t = self.pairs[i]
        return torch.tensor(s + [EOS]), torch.tensor([BOS] + t + [EOS])


def collate(rows):
    src, tgt = zip(*rows)
    return (
        pad_sequence(src, batch_first=True, padding_value=PAD),
        pad_sequence(tgt, batch_first=True, padding_value=PAD),
    )
