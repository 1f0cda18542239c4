import re

import torch

PAD, UNK = 0, 1


def normalise(text):
    text = text.lower()
    text = re.sub(r"[^a-z0-9# ]+", " ", text)
    return re.sub(r"\d+", "#", text).strip()


class Vocabulary:
    def __init__(self, texts):
        words = sorted({w for t in texts for w in normalise(t).split()})
        self.index = {w: i + 2 for i, w in enumerate(words)}

    def __len__(self):
        return len(self.index) + 2

    def encode(self, text, length=16):
        ids = [self.index.get(w, UNK) for w in text.split()][:length]
        return torch.tensor(ids + [PAD] * (length - len(ids)))


class TicketSet(torch.utils.data.Dataset):
    def __init__(self, rows, vocab):
        self.samples = [(vocab.encode(normalise(text)), label) for text, label in rows]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]
