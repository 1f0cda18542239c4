import torch
from torch.utils.data import Dataset


class BagSet(Dataset):
    """A biopsy is a bag of tiles; it is positive if at least one tile shows tumour."""

    def __init__(self, n: int, seed: int, dim: int = 12):
        g = torch.Generator().manual_seed(seed)
        pattern = torch.linspace(-1, 1, dim) * 1.6
        self.bags, self.labels = [], []
        for _ in range(n):
            size = int(torch.randint(5, 20, (1,), generator=g))
            positive = bool(torch.rand(1, generator=g) < 0.5)
            tiles = torch.randn(size, dim, generator=g)
            if positive:
                k = int(torch.randint(1, 4, (1,), generator=g))
                tiles[:k] += pattern
            self.bags.append(tiles[torch.randperm(size, generator=g)])
            self.labels.append(float(positive))

    def __len__(self):
        return len(self.bags)

    def __getitem__(self, i):
        return self.bags[i], self.labels[i]


def collate_bags(rows):
    tiles = torch.nn.utils.rnn.pad_sequence([b for b, _ in rows], batch_first=True)
    sizes = torch.tensor([len(b) for b, _ in rows])
    real = torch.arange(tiles.shape[1])[None] < sizes[:, None]
    return tiles, real, torch.tensor([y for _, y in rows])
