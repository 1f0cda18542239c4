import random

import torch
from torch.utils.data import Dataset

ANIMALS = {"dog": ("four", "barks"), "cat": ("four", "meows"), "duck": ("two", "quacks"), "cow": ("four", "moos"),
           "bee": ("six", "buzzes"), "crow": ("two", "caws"), "ant": ("six", "whispers"), "frog": ("four", "croaks")}


def qa_pairs(n, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        a = rng.choice(list(ANIMALS))
        adj = rng.choice(["big", "small", "old", "young", "happy"])
        if rng.random() < 0.5:
            out.append((f"how many legs has the {adj} {a} ?", f"the {a} has {ANIMALS[a][0]} legs"))
        else:
            out.append((f"which sound makes the {adj} {a} ?", f"it {ANIMALS[a][1]}"))
    return out


class QADataset(Dataset):
    def __init__(self, pairs, tok):
        self.pairs, self.tok = pairs, tok

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        question, answer = self.pairs[i]
        q, a = self.tok.encode(question), self.tok.encode(answer)
        ids = torch.tensor(q + a)
        labels = ids.clone()
        labels[: len(q)] = -100
        return ids, labels


def pad_collate(tok):
    def fn(items):
        ids, labels = zip(*items)
        pad = torch.nn.utils.rnn.pad_sequence
        return pad(ids, batch_first=True, padding_value=tok.PAD), pad(labels, batch_first=True, padding_value=-100)
    return fn
