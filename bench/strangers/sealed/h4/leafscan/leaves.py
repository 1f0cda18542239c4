import torch
from torch.utils.data import Dataset


class Leaves(Dataset):
    """Tiny leaf photographs: species differ in tint, vein spacing and overall brightness."""

    def __init__(self, count, size, species, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, species, (count,), generator=g)
        rows = torch.arange(size).float()
        self.x = torch.randn(count, 3, size, size, generator=g) * 0.4
        for i, s in enumerate(self.y.tolist()):
            self.x[i] += torch.sin(rows * (0.8 + 0.05 * s))[:, None]
            self.x[i] += 0.25 * s
            self.x[i, 1] += 0.1 * s
        self.x -= 0.4

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]
