import argparse
import random
import tempfile
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from trainer import Trainer


@dataclass(frozen=True)
class Config:
    lr: float = 1e-3
    weight_decay: float = 0.02
    batch_size: int = 32
    seed: int = 5


def synth_lesions(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
    cx, cy = (8 + 8 * torch.rand(2, n, 1, 1, generator=g))
    r = 3 + 3 * torch.rand(n, 1, 1, generator=g)
    ang = torch.atan2(yy - cy, xx - cx)
    rough = 0.25 * y.view(-1, 1, 1) * torch.sin(7 * ang)
    img = torch.sigmoid(3 * (r * (1 + rough) - ((xx - cx) ** 2 + (yy - cy) ** 2).sqrt()))
    return (img + 0.1 * torch.randn(img.shape, generator=g)).unsqueeze(1), y


def build():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(24 * 36, 2),
    )


def session(workdir, until):
    cfg = Config()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    trainer = Trainer(build(), synth_lesions(256, 1), synth_lesions(96, 2), cfg, workdir)
    print("continuing" if trainer.restore() else "starting", "at epoch", trainer.epoch)
    trainer.fit(until)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", default=None)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    if args.workdir:
        session(args.workdir, args.epochs)
    else:
        with tempfile.TemporaryDirectory() as d:
            session(d, args.epochs // 2)
            session(d, args.epochs)
