import torch
from torch.utils.data import Dataset


class RigDataset(Dataset):
    """Simulated rig readings: every sensor sees the machine state through its own mixing."""

    def __init__(self, cfg, n, mixing, generator):
        self.y = torch.randint(0, cfg.n_states, (n,), generator=generator)
        self.readings = {}
        for name, width in cfg.sensors.items():
            clean = mixing[name][self.y]
            noise = 1.5 * torch.randn(n, width, generator=generator)
            sign = torch.randint(0, 2, (n, 1), generator=generator) * 2 - 1
            self.readings[name] = clean * sign + noise

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {k: v[i] for k, v in self.readings.items()}, self.y[i]


def make_splits(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    mixing = {k: 2.0 * torch.randn(cfg.n_states, w, generator=g) for k, w in cfg.sensors.items()}
    return RigDataset(cfg, cfg.n_train, mixing, g), RigDataset(cfg, cfg.n_test, mixing, g)
