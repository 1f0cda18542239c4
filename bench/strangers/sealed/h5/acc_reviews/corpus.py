import torch
from torch.utils.data import Dataset


class SyntheticReviews(Dataset):
    """Bags of word ids; some words are good, some bad, most are neutral."""

    def __init__(self, n, vocab=300, length=24, seed=0):
        weights = torch.randn(vocab, generator=torch.Generator().manual_seed(99))
        weights[weights.abs() < 0.8] = 0.0
        g = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(0, vocab, (n, length), generator=g)
        self.labels = (weights[self.tokens].sum(1) > 0).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"tokens": self.tokens[i], "labels": self.labels[i]}
