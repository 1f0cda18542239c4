"""Load forecasting (hourly demand) with a GRU. Jobs on the cluster are preempted, hence --resume."""
import argparse
import math
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def demand(hours, seed):
    rng = np.random.default_rng(seed)
    h = np.arange(hours)
    base = 10 + 3 * np.sin(2 * np.pi * h / 24) + 1.5 * np.sin(2 * np.pi * h / 168)
    ar = np.zeros(hours)
    for k in range(1, hours):
        ar[k] = 0.8 * ar[k - 1] + rng.normal(0, 0.3)
    return (base + ar).astype(np.float32)


class Windows(Dataset):
    def __init__(self, series, context, horizon):
        self.s, self.c, self.h = torch.from_numpy(series), context, horizon

    def __len__(self):
        return (len(self.s) - self.c - self.h) // 3

    def __getitem__(self, i):
        i *= 3
        return self.s[i:i + self.c, None], self.s[i + self.c:i + self.c + self.h]


class Forecaster(nn.Module):
    def __init__(self, hidden, horizon):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.proj = nn.Linear(hidden, horizon)

    def forward(self, x):
        return self.proj(self.gru(x)[0][:, -1])


class Job:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(args.seed)
        series = demand(1400, args.seed)
        cut = 1100
        mean, std = series[:cut].mean(), series[:cut].std()
        series = (series - mean) / std
        self.train_ds = Windows(series[:cut], args.context, args.horizon)
        self.val_ds = Windows(series[cut:], args.context, args.horizon)
        self.net = Forecaster(args.hidden, args.horizon)
        self.build_optimizer()
        self.epoch, self.best = 0, math.inf

    def build_optimizer(self):
        decay = [p for p in self.net.parameters() if p.ndim > 1]
        plain = [p for p in self.net.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 1e-2},
                                            {"params": plain, "weight_decay": 0.0}], lr=self.args.lr)

    @property
    def path(self):
        return os.path.join(self.args.out, "job.ckpt")

    def save(self):
        torch.save({"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "epoch": self.epoch, "best": self.best}, self.path)

    def restore(self):
        state = torch.load(self.path, weights_only=True)
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.best = state["epoch"], state["best"]

    def start(self):
        if self.args.resume and os.path.exists(self.path):
            self.restore()
            print(f"continuing after epoch {self.epoch} (best {self.best:.4f})")
        self.net.to("cuda" if torch.cuda.is_available() else "cpu")
        self.build_optimizer()
        self.loop()

    def loop(self):
        dev = next(self.net.parameters()).device
        loss_fn = nn.SmoothL1Loss()
        while self.epoch < self.args.epochs:
            g = torch.Generator().manual_seed(self.args.seed * 1000 + self.epoch)
            self.net.train()
            for x, y in DataLoader(self.train_ds, self.args.batch, shuffle=True, generator=g):
                self.optimizer.zero_grad()
                loss = loss_fn(self.net(x.to(dev)), y.to(dev))
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                self.optimizer.step()
            self.net.eval()
            with torch.no_grad():
                err = sum(loss_fn(self.net(x.to(dev)), y.to(dev)).item() * len(y)
                          for x, y in DataLoader(self.val_ds, 128)) / len(self.val_ds)
            self.epoch += 1
            self.best = min(self.best, err)
            self.save()
            print(f"epoch {self.epoch:2d}  train {loss.item():.4f}  val {err:.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    for name, kind, default in [("context", int, 48), ("horizon", int, 6), ("hidden", int, 24), ("batch", int, 32),
                                ("epochs", int, 4), ("seed", int, 4), ("lr", float, 5e-3)]:
        ap.add_argument(f"--{name}", type=kind, default=default)
    ap.add_argument("--out", default=os.path.join(tempfile.gettempdir(), "forecast_job"))
    ap.add_argument("--resume", action="store_true")
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    Job(args).start()
