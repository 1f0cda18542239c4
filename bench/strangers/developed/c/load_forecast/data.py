import numpy as np
import torch
from torch.utils.data import Dataset


def synth_load(hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    temp = 12 + 8 * np.sin(2 * np.pi * t / (24 * 90)) + rng.normal(0, 1.0, hours)
    load = 50 + 10 * np.sin(2 * np.pi * t / 24) + 4 * np.sin(2 * np.pi * t / 168) - 0.6 * temp
    load += rng.normal(0, 0.8, hours)
    return np.stack([load, temp, np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24)], 1).astype(np.float32)


class Windows(Dataset):
    def __init__(self, series, context, horizon, mean, std, step=1):
        self.s = torch.from_numpy((series - mean) / std)
        self.c, self.h, self.step = context, horizon, step

    def __len__(self):
        return (len(self.s) - self.c - self.h) // self.step

    def __getitem__(self, i):
        a = i * self.step
        return self.s[a:a + self.c], self.s[a + self.c:a + self.c + self.h, 0]
