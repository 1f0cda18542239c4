import logging

import numpy as np
import torch
from torch.utils.data import TensorDataset, random_split

from config import ModelConfig, TrainConfig
from nets import ActivityNet
from trainer import Trainer


def simulate(n, mcfg, rng):
    t = np.arange(mcfg.window) / 32.0
    y = rng.integers(0, mcfg.n_classes, n)
    freq = 0.5 + y[:, None, None] * 0.8
    phase = rng.uniform(0, 2 * np.pi, (n, mcfg.n_channels, 1))
    x = np.sin(2 * np.pi * freq * t[None, None] + phase)
    x += rng.normal(0, 0.6, x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.long)


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    mcfg, tcfg = ModelConfig(), TrainConfig()
    torch.manual_seed(tcfg.seed)
    rng = np.random.default_rng(tcfg.seed)
    data = TensorDataset(*simulate(2000, mcfg, rng))
    train_set, val_set = random_split(data, [1600, 400])
    Trainer(ActivityNet(mcfg), train_set, val_set, tcfg).fit()


if __name__ == "__main__":
    main()
