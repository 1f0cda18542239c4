import torch
from torch.utils.data import Dataset


def river_level(n, seed):
    gen = torch.Generator().manual_seed(seed)
    rain = (torch.rand(n, generator=gen) < 0.08) * torch.rand(n, generator=gen) * 3
    level = torch.zeros(n)
    for t in range(1, n):
        level[t] = 0.93 * level[t - 1] + rain[t] + 0.05 * torch.randn((), generator=gen)
    return level


class Windows(Dataset):
    def __init__(self, values, context=24):
        self.values, self.context = values, context

    def __len__(self):
        return len(self.values) - self.context

    def __getitem__(self, i):
        return self.values[i:i + self.context, None], self.values[i + self.context]
