"""Noisy 16x16 pictures of six kinds of figure, random place, size and brightness."""
import numpy as np
import torch
from torch.utils.data import TensorDataset

CLASSES = ["disc", "ring", "square", "cross", "diag", "bars"]


def draw(kind, size, rng):
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)
    cy, cx = rng.uniform(5, size - 6, 2)
    r = rng.uniform(3.2, 5.0)
    dy, dx = yy - cy, xx - cx
    dist = np.hypot(dy, dx)
    cheb = np.maximum(abs(dy), abs(dx))
    if kind == "disc":
        m = dist <= r
    elif kind == "ring":
        m = abs(dist - r) <= 0.9
    elif kind == "square":
        m = abs(cheb - r) <= 0.7
    elif kind == "cross":
        m = (cheb <= r) & (np.minimum(abs(dy), abs(dx)) <= 0.8)
    elif kind == "diag":
        m = (cheb <= r) & (abs(abs(dy) - abs(dx)) <= 0.8)
    else:
        m = (cheb <= r) & (np.floor(yy) % 3 == 0)
    return m.astype(np.float32) * rng.uniform(0.8, 1.2)


def make_split(n, size, noise, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(CLASSES), n)
    imgs = np.stack([draw(CLASSES[k], size, rng) for k in labels])
    imgs += noise * rng.standard_normal(imgs.shape).astype(np.float32)
    imgs = (imgs - 0.2) / 0.5
    return TensorDataset(torch.from_numpy(imgs).float()[:, None], torch.from_numpy(labels).long())
