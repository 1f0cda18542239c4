import logging

import torch
from torch.utils.data import DataLoader, TensorDataset

from kws.net import DSCNN
from kws.trainer import KWSTrainer

logging.basicConfig(level=logging.INFO, format="%(message)s")

CFG = {
    "lr": 1e-3,
    "lr_decay_per_epoch": 0.9,
    "wd": 1e-5,
    "batch_size": 32,
    "epochs": 5,
    "ckpt": "/tmp/kws.pt",
}
WORDS = ["yes", "no", "up", "down", "left", "right"]


def fake_mfcc(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, len(WORDS), (n,), generator=g)
    x = torch.randn(n, 1, 49, 10, generator=g)
    for i in range(n):
        k = int(y[i])
        x[i, 0, 6 * k + 2:6 * k + 12, k:k + 4] += 1.2
    return TensorDataset(x, y)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_dl = DataLoader(fake_mfcc(2000, 0), CFG["batch_size"], shuffle=True)
    dev_dl = DataLoader(fake_mfcc(400, 1), 200)
    KWSTrainer(DSCNN(len(WORDS)), train_dl, dev_dl, CFG).run()
