from collections import Counter

import torch
from torch.utils.data import Dataset

PAD, UNK = 0, 1


class Vocab:
    def __init__(self, texts, max_size):
        counts = Counter(w for t in texts for w in t.split())
        self.itos = ["<pad>", "<unk>"] + [w for w, _ in counts.most_common(max_size - 2)]
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def __call__(self, text):
        return [self.stoi.get(w, UNK) for w in text.split()]


class ReviewSet(Dataset):
    """Encoded reviews. Builds its vocabulary from the texts unless one is passed."""

    def __init__(self, samples, max_vocab=200, max_len=16, vocab=None):
        texts, self.labels = zip(*samples)
        self.vocab = vocab or Vocab(texts, max_vocab)
        self.rows = [self.vocab(t)[:max_len] for t in texts]
        self.max_len = max_len

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i] + [PAD] * (self.max_len - len(self.rows[i]))
        return torch.tensor(row), float(self.labels[i])
