"""Preemptible training job: may be killed after any epoch and started again."""
import os
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def data():
    raw = load_breast_cancer()
    order = np.random.RandomState(0).permutation(len(raw.target))
    x, y = raw.data[order].astype(np.float32), raw.target[order]
    tr = slice(0, 400)
    x = (x - x[tr].mean(0)) / x[tr].std(0)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    return TensorDataset(x[:400], y[:400]), TensorDataset(x[400:], y[400:])


class Job:
    def __init__(self, path: Path, epochs: int = 6):
        random.seed(0), np.random.seed(0), torch.manual_seed(0)
        self.path, self.epochs = path, epochs
        train, val = data()
        self.order = torch.Generator().manual_seed(77)
        self.train = DataLoader(train, 40, shuffle=True, generator=self.order)
        self.val = DataLoader(val, 100)
        self.net = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.sched = torch.optim.lr_scheduler.MultiStepLR(self.opt, [3, 5], gamma=0.3)
        self.done, self.best = 0, 0.0

    def parts(self):
        return {"net": self.net, "opt": self.opt, "sched": self.sched}

    def save(self):
        blob = {k: v.state_dict() for k, v in self.parts().items()}
        blob |= {"done": self.done, "best": self.best, "rng_torch": torch.get_rng_state(),
                 "rng_order": self.order.get_state(), "rng_numpy": np.random.get_state(),
                 "rng_python": random.getstate()}
        tmp = self.path.with_suffix(".part")
        torch.save(blob, tmp)
        os.replace(tmp, self.path)

    def load(self):
        if not self.path.exists():
            return
        blob = torch.load(self.path, weights_only=False)
        for k, v in self.parts().items():
            v.load_state_dict(blob[k])
        self.done, self.best = blob["done"], blob["best"]
        torch.set_rng_state(blob["rng_torch"])
        self.order.set_state(blob["rng_order"])
        np.random.set_state(blob["rng_numpy"])
        random.setstate(blob["rng_python"])

    def run(self, limit=None):
        self.load()
        for epoch in range(self.done, min(self.epochs, limit or self.epochs)):
            self.net.train()
            for x, y in self.train:
                x = x + np.random.uniform(0, 0.1) * torch.randn_like(x)
                loss = nn.functional.cross_entropy(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            self.sched.step()
            self.net.eval()
            with torch.no_grad():
                hits = sum((self.net(x).argmax(1) == y).sum().item() for x, y in self.val)
            acc = hits / len(self.val.dataset)
            self.best = max(self.best, acc)
            self.done = epoch + 1
            self.save()
            print(f"epoch {epoch} loss {loss.item():.6f} lr {self.opt.param_groups[0]['lr']:.4f} acc {acc:.4f}")
        return self.best


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    Job(folder / "job.pt").run(limit=3)
    Job(folder / "job.pt").run()
    print("uninterrupted")
    Job(folder / "whole.pt").run()
