"""Tide level forecast that can be stopped after any epoch and continued bit for bit."""
import os
import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CONFIG = dict(seed=3, epochs=6, batch=32, lr=3e-3, look_back=36, patience=4)


def windows(look_back):
    g = torch.Generator().manual_seed(99)
    t = torch.arange(1500, dtype=torch.float32)
    level = torch.sin(t / 1.98) + 0.4 * torch.sin(t / 1.91 + 1) + 0.05 * torch.randn(1500, generator=g)
    x = level.unfold(0, look_back, 1)[:-1]
    y = level[look_back:]
    cut = 1100
    return (x[:cut], y[:cut]), (x[cut + look_back:], y[cut + look_back:])


class Run:
    def __init__(self, cfg, path):
        self.cfg, self.path = cfg, path
        random.seed(cfg["seed"])
        np.random.seed(cfg["seed"])
        torch.manual_seed(cfg["seed"])
        train, self.valid = windows(cfg["look_back"])
        self.order = torch.Generator().manual_seed(cfg["seed"] + 1)
        self.loader = DataLoader(TensorDataset(*train), cfg["batch"], shuffle=True, generator=self.order)
        self.model = nn.Sequential(nn.Linear(cfg["look_back"], 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 1), nn.Flatten(0))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg["lr"])
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, cfg["epochs"] * len(self.loader))
        self.epoch, self.best, self.bad = 0, float("inf"), 0

    def state(self):
        return {
            "model": self.model.state_dict(), "opt": self.opt.state_dict(), "sched": self.sched.state_dict(),
            "epoch": self.epoch, "best": self.best, "bad": self.bad, "order": self.order.get_state(),
            "rng": (random.getstate(), np.random.get_state(), torch.get_rng_state()),
        }

    def restore(self):
        s = torch.load(self.path, weights_only=False)
        for part in ("model", "opt", "sched"):
            getattr(self, part).load_state_dict(s[part])
        self.epoch, self.best, self.bad = s["epoch"], s["best"], s["bad"]
        self.order.set_state(s["order"])
        py, npy, th = s["rng"]
        random.setstate(py), np.random.set_state(npy), torch.set_rng_state(th)
        return self

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            return nn.functional.mse_loss(self.model(self.valid[0]), self.valid[1]).item()

    def go(self, until=None):
        until = self.cfg["epochs"] if until is None else until
        while self.epoch < until and self.bad < self.cfg["patience"]:
            self.model.train()
            for x, y in self.loader:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.sched.step()
            score = self.validate()
            self.bad = 0 if score < self.best else self.bad + 1
            self.best = min(self.best, score)
            self.epoch += 1
            print(f"epoch {self.epoch} valid {score:.5f} lr {self.sched.get_last_lr()[0]:.5f}")
            torch.save(self.state(), self.path + ".new")
            os.replace(self.path + ".new", self.path)
        return self


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as d:
        whole = Run(CONFIG, os.path.join(d, "a.pt")).go()
        Run(CONFIG, os.path.join(d, "b.pt")).go(until=3)
        resumed = Run(CONFIG, os.path.join(d, "b.pt")).restore().go()
    same = all(torch.equal(a, b) for a, b in zip(whole.model.parameters(), resumed.model.parameters()))
    print("resumed run is identical:", same)
