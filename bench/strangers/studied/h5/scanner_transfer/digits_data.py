import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def load(labelled_per_class=4):
    """Old scanner: many labelled pages.  New scanner: darker, noisier, and only a handful of labels."""
    bunch = load_digits()
    x = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(bunch.target)
    pool, test = train_test_split(torch.arange(len(y)).numpy(), test_size=0.4, random_state=0, stratify=y)
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(5))
    new = (0.8 * x + 0.25 * noise).clamp(0, 1)
    few = []
    for c in range(10):
        few += [i for i in pool if y[i] == c][:labelled_per_class]
    return (x[pool], y[pool]), (new[few], y[few]), (new[test], y[test])


def jitter(x, gen):
    """Random shift by one pixel and a little noise."""
    dx, dy = torch.randint(-1, 2, (2,), generator=gen).tolist()
    x = torch.roll(x, (dx, dy), (2, 3))
    return x + 0.1 * torch.randn(x.shape, generator=gen)
