# Mosaic tiles: which shape is on the tile? (small competition, my baseline)
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CFG = dict(size=16, n_train=640, n_valid=200, bs=32, epochs=8, lr=2e-3, seed=42)
SHAPES = ["disc", "cross", "frame", "bar"]


def seed_everything(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


def draw(shape, size, rng):
    """Returns a uint8 image in the layout of cv2.imread (rows, columns, colours)."""
    img = rng.integers(60, 120, (size, size, 3)).astype(np.float32)
    yy, xx = np.mgrid[:size, :size]
    cy, cx = rng.uniform(5, size - 5, 2)
    dy, dx = np.abs(yy - cy), np.abs(xx - cx)
    region = {
        "disc": dy ** 2 + dx ** 2 < 14,
        "cross": ((dy < 1) & (dx < 4)) | ((dx < 1) & (dy < 4)),
        "frame": (np.maximum(dy, dx) < 4.5) & (np.maximum(dy, dx) > 3),
        "bar": (dy < 4) & (dx < 1.2),
    }[shape]
    colour = rng.uniform(-50, 90, 3)
    img[region] += colour
    return np.clip(img, 0, 255).astype(np.uint8)


class Tiles(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(SHAPES), n)
        self.images = np.stack([draw(SHAPES[l], CFG["size"], rng) for l in self.labels])
        self.mean = self.images.mean((0, 1, 2)) / 255
        self.std = self.images.std((0, 1, 2)) / 255

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i].astype(np.float32) / 255
        img = (img - self.mean) / self.std
        h, w, c = img.shape
        x = torch.from_numpy(img.astype(np.float32).reshape(c, h, w))
        return x, int(self.labels[i])


class Net(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        def block(i, o):
            return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
        self.f = nn.Sequential(*block(3, 16), *block(16, 24), nn.MaxPool2d(2), *block(24, 32), nn.AdaptiveMaxPool2d(1))
        self.c = nn.Linear(32, n_classes)

    def forward(self, x):
        return self.c(self.f(x).flatten(1))


def run_epoch(net, dl, opt=None):
    net.train(opt is not None)
    tot_loss = tot_ok = 0
    with torch.set_grad_enabled(opt is not None):
        for x, y in dl:
            out = net(x)
            loss = nn.functional.cross_entropy(out, y)
            if opt:
                opt.zero_grad()
                loss.backward()
                opt.step()
            tot_loss += loss.item() * len(y)
            tot_ok += (out.argmax(1) == y).sum().item()
    return tot_loss / len(dl.dataset), tot_ok / len(dl.dataset)


if __name__ == "__main__":
    seed_everything(CFG["seed"])
    tr, va = Tiles(CFG["n_train"], 1), Tiles(CFG["n_valid"], 2)
    va.mean, va.std = tr.mean, tr.std
    dl_tr = DataLoader(tr, CFG["bs"], shuffle=True)
    dl_va = DataLoader(va, 100)
    net = Net(len(SHAPES))
    opt = torch.optim.Adam(net.parameters(), lr=CFG["lr"])
    for ep in range(CFG["epochs"]):
        tl, ta = run_epoch(net, dl_tr, opt)
        vl, va_acc = run_epoch(net, dl_va)
        print(f"ep {ep} | train {tl:.3f} {ta:.3f} | valid {vl:.3f} {va_acc:.3f}")
