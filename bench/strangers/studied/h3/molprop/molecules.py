import numpy as np
import torch
from torch.utils.data import Dataset

ATOMS = 6


class ToyMolecules(Dataset):
    """Random trees of atoms; the property depends on which atoms touch."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        affinity = np.random.default_rng(99).normal(size=(ATOMS, ATOMS))
        affinity = affinity + affinity.T
        self.items = []
        for _ in range(n):
            k = int(rng.integers(5, 12))
            kind = rng.integers(0, ATOMS, k)
            adj = np.zeros((k, k), dtype=np.float32)
            for i in range(1, k):
                j = int(rng.integers(0, i))
                adj[i, j] = adj[j, i] = 1.0
            target = float((adj * affinity[kind][:, kind]).sum() / 2 / k)
            self.items.append((torch.from_numpy(kind), torch.from_numpy(adj), target))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    n = max(len(k) for k, _, _ in items)
    kind = torch.zeros(len(items), n, dtype=torch.long)
    adj = torch.zeros(len(items), n, n)
    mask = torch.zeros(len(items), n)
    for b, (k, a, _) in enumerate(items):
        kind[b, :len(k)], adj[b, :len(k), :len(k)], mask[b, :len(k)] = k, a, 1.0
    return kind, adj, mask, torch.tensor([t for _, _, t in items], dtype=torch.float32)
