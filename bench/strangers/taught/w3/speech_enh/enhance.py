"""Speech enhancement (mask estimation). Cluster jobs are limited to 4 h, so every job continues the last one."""
import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Mixtures(Dataset):
    """Harmonic tones in noise as magnitude spectra (33 bins)."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.clean = torch.zeros(n, 33)
        for i in range(n):
            f0 = int(torch.randint(3, 9, (1,), generator=g))
            self.clean[i, ::f0] = 0.5 + torch.rand(1, generator=g)
        self.noisy = (self.clean + 0.4 * torch.randn(n, 33, generator=g).abs())

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        return self.noisy[i], self.clean[i]


class MaskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(33, 96), nn.PReLU(), nn.Linear(96, 96), nn.PReLU(), nn.Linear(96, 33), nn.Sigmoid())

    def forward(self, x):
        return x * self.net(x)


class Runner:
    def __init__(self, args):
        self.args = args
        self.model = MaskNet()
        self.optimizer = None
        self.epoch = 0
        if os.path.exists(args.ckpt):
            self.restore(args.ckpt)
        self.setup_optim()

    def setup_optim(self):
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.args.lr)

    def state(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": self.epoch}

    def restore(self, path):
        ck = torch.load(path)
        self.model.load_state_dict(ck["model"])
        self.epoch = ck["epoch"]
        if self.optimizer is not None:
            self.optimizer.load_state_dict(ck["optimizer"])
        print(f"restored {path} at epoch {self.epoch}")

    def fit(self):
        train = DataLoader(Mixtures(1500, 1), 32, shuffle=True)
        val = DataLoader(Mixtures(300, 2), 300)
        mse = nn.MSELoss()
        for _ in range(self.args.epochs):
            lr = self.args.lr * 0.95 ** self.epoch
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            self.model.train()
            for noisy, clean in train:
                loss = mse(self.model(noisy), clean)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.epoch += 1
            self.model.eval()
            with torch.no_grad():
                vl = sum(mse(self.model(a), b).item() for a, b in val) / len(val)
            print(f"epoch {self.epoch} lr {lr:.5f} train {loss.item():.5f} val {vl:.5f}")
            torch.save(self.state(), self.args.ckpt)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--ckpt", default="/tmp/w3_enh.pt")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--lr", type=float, default=2e-3)
    Runner(p.parse_args()).fit()
