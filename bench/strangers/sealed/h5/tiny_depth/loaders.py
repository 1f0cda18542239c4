import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Scenes(Dataset):
    """A bright ball in front of a wall; the target is its distance. Crops and lights are random."""

    def __init__(self, n, size=16, train=True):
        self.n, self.size, self.train = n, size, train
        rs = np.random.RandomState(0 if train else 1)
        self.depth = rs.uniform(1, 4, n).astype(np.float32)
        self.pos = rs.uniform(6, 18, (n, 2))

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        full = self.size + 8
        yy, xx = np.mgrid[:full, :full]
        radius = 6.0 / self.depth[i]
        img = (np.hypot(yy - self.pos[i, 0], xx - self.pos[i, 1]) < radius).astype(np.float32)
        top, left, light = 4, 4, 1.0
        if self.train:
            top, left = np.random.randint(0, 9, 2)
            light = np.random.uniform(0.6, 1.4)
            img = img + 0.1 * np.random.randn(full, full)
        crop = img[top:top + self.size, left:left + self.size] * light
        return torch.from_numpy(crop.astype(np.float32)).unsqueeze(0), self.depth[i]


def init_worker(worker_id):
    # numpy takes 32 bits only
    seed = torch.utils.data.get_worker_info().seed
    np.random.seed(seed >> 32)


def make_loader(n, train, batch_size, workers, seed):
    gen = torch.Generator().manual_seed(seed)
    return DataLoader(Scenes(n, train=train), batch_size=batch_size, shuffle=train, num_workers=workers,
                      worker_init_fn=init_worker if train else None, generator=gen)
