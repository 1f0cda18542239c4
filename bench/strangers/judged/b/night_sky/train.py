import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from augment import Pipeline


class CutOuts(Dataset):
    """label 1: double star, label 0: single star"""

    def __init__(self, n, seed, pipeline=None, side=16):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:side, :side]
        self.imgs, self.labels = [], rng.integers(0, 2, n)
        for lab in self.labels:
            c = rng.uniform(5, side - 5, 2)
            img = np.exp(-((yy - c[0]) ** 2 + (xx - c[1]) ** 2) / 3)
            if lab:
                a = rng.uniform(0, 2 * np.pi)
                o = c + 3.2 * np.array([np.sin(a), np.cos(a)])
                img += 0.7 * np.exp(-((yy - o[0]) ** 2 + (xx - o[1]) ** 2) / 3)
            self.imgs.append((img + rng.normal(0, 0.05, img.shape)).astype(np.float32))
        self.pipeline = pipeline

    def __len__(self):
        return len(self.imgs)

    def __getitem__(self, i):
        img = self.imgs[i]
        if self.pipeline is not None:
            img = self.pipeline(img)
        return torch.from_numpy(img)[None], float(self.labels[i])


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--aug", nargs="*", default=["rotate", "mirror", "sensor_noise", "hot_pixels"])
    return ap.parse_args()


def main(a):
    random.seed(a.seed)
    np.random.seed(a.seed)
    torch.manual_seed(a.seed)
    train = CutOuts(400, 1, Pipeline(a.aug, a.seed))
    val = CutOuts(120, 2)
    train_dl = DataLoader(train, a.batch, shuffle=True, num_workers=a.workers, multiprocessing_context="fork")
    val_dl = DataLoader(val, 60)
    net = nn.Sequential(nn.Conv2d(1, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    bce = nn.BCEWithLogitsLoss()
    for ep in range(a.epochs):
        net.train()
        for x, y in train_dl:
            opt.zero_grad()
            loss = bce(net(x), y.float())
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            ok = sum(((net(x) > 0) == (y > 0.5)).sum().item() for x, y in val_dl)
        print(f"{ep}: loss {loss.item():.3f} val acc {ok / len(val):.3f}")


if __name__ == "__main__":
    main(get_args())
