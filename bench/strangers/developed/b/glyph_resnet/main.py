#!/usr/bin/env python3
"""Residual CNN on 8x8 digits; whole batches are perturbed in the collate function (fast on CPU)."""
import random
from functools import partial

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.dataloader import default_collate

HP = dict(epochs=5, bs=64, lr=0.05, shift=1, noise=0.15, cutout=3, seed=1234)


def jitter_collate(samples, shift, noise, cutout):
    """Random roll, Gaussian noise and one square hole per image."""
    img, lab = default_collate(samples)
    b, _, h, w = img.shape
    for k in range(b):
        dy, dx = (random.randint(-shift, shift) for _ in range(2))
        img[k] = img[k].roll((dy, dx), (1, 2))
        cy, cx = random.randint(0, h - cutout), random.randint(0, w - cutout)
        img[k, :, cy:cy + cutout, cx:cx + cutout] = 0
    return img + noise * torch.randn_like(img), lab


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(c, c, 3, 1, 1), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, 1, 1), nn.BatchNorm2d(c)
        )

    def forward(self, x):
        return torch.relu(x + self.f(x))


def build_net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU(), Res(16), nn.MaxPool2d(2), Res(16),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10),
    )


def loaders(hp):
    raw = load_digits()
    images = torch.tensor(raw.images[:, None] / 16.0, dtype=torch.float32)
    data = TensorDataset(images, torch.tensor(raw.target))
    perm = np.random.RandomState(hp["seed"]).permutation(len(data)).tolist()
    parts = {"train": Subset(data, perm[:1200]), "val": Subset(data, perm[1200:])}
    common = dict(
        batch_size=hp["bs"],
        num_workers=0,
        collate_fn=partial(jitter_collate, shift=hp["shift"], noise=hp["noise"], cutout=hp["cutout"]),
    )
    return {name: DataLoader(part, shuffle=name == "train", **common) for name, part in parts.items()}


def epoch(net, loader, opt=None):
    training = opt is not None
    net.train(training)
    loss_sum = correct = count = 0
    with torch.set_grad_enabled(training):
        for img, lab in loader:
            out = net(img)
            loss = nn.functional.cross_entropy(out, lab)
            if training:
                opt.zero_grad()
                loss.backward()
                opt.step()
            loss_sum += loss.item() * len(lab)
            correct += (out.argmax(1) == lab).sum().item()
            count += len(lab)
    return loss_sum / count, correct / count


if __name__ == "__main__":
    random.seed(HP["seed"])
    np.random.seed(HP["seed"])
    torch.manual_seed(HP["seed"])
    dl = loaders(HP)
    net = build_net()
    sgd = optim.SGD(net.parameters(), HP["lr"], momentum=0.9, nesterov=True, weight_decay=5e-4)
    plan = optim.lr_scheduler.MultiStepLR(sgd, [3], gamma=0.1)
    for e in range(HP["epochs"]):
        tl, ta = epoch(net, dl["train"], sgd)
        vl, va = epoch(net, dl["val"])
        plan.step()
        print(f"{e}: train {tl:.3f}/{ta:.3f}   val {vl:.3f}/{va:.3f}")
