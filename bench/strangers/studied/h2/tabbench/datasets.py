import numpy as np
import torch
from sklearn.datasets import make_circles, make_moons
from sklearn.model_selection import train_test_split


def load(name, n_samples, noise, seed):
    maker = {"moons": make_moons, "circles": lambda **k: make_circles(factor=0.45, **k)}[name]
    X, y = maker(n_samples=n_samples, noise=noise, random_state=seed)
    X = (X - X.mean(0)) / X.std(0)
    parts = train_test_split(X.astype(np.float32), y.astype(np.int64), test_size=0.3, random_state=seed, stratify=y)
    return [torch.from_numpy(p) for p in parts]
