import os
import random
from pathlib import Path

import numpy as np
import torch
from torch import nn


class Trainer:
    def __init__(self, model, train_data, val_data, cfg, workdir):
        self.model = model
        self.train_data, self.val_data = train_data, val_data
        self.cfg = cfg
        self.path = Path(workdir) / "last.pt"
        self.epoch = 0
        self.best = float("inf")
        self.optimizer = None
        self._setup()

    def _setup(self):
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        plain = [p for p in self.model.parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": decay, "weight_decay": self.cfg.weight_decay}, {"params": plain, "weight_decay": 0.0}],
            lr=self.cfg.lr,
        )
        self.loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)

    # ---------------------------------------------------------------- state
    def save(self):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "best": self.best,
            "torch_rng": torch.get_rng_state(),
            "numpy_rng": np.random.get_state(),
            "python_rng": random.getstate(),
        }
        tmp = self.path.with_suffix(".tmp")
        torch.save(state, tmp)
        os.replace(tmp, self.path)

    def restore(self):
        if not self.path.exists():
            return False
        state = torch.load(self.path, weights_only=False)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.best = state["epoch"], state["best"]
        torch.set_rng_state(state["torch_rng"])
        np.random.set_state(state["numpy_rng"])
        random.setstate(state["python_rng"])
        return True

    # ---------------------------------------------------------------- loop
    def batches(self, data, shuffle):
        x, y = data
        if shuffle:
            g = torch.Generator().manual_seed(self.cfg.seed + self.epoch)
            order = torch.randperm(len(y), generator=g)
        else:
            order = torch.arange(len(y))
        for idx in order.split(self.cfg.batch_size):
            yield x[idx], y[idx]

    def fit(self, until):
        self._setup()
        while self.epoch < until:
            self.model.train()
            for x, y in self.batches(self.train_data, shuffle=True):
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            val = self.validate()
            self.best = min(self.best, val)
            self.epoch += 1
            print(f"epoch {self.epoch} train {loss.item():.4f} val {val:.4f} best {self.best:.4f}")
            self.save()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total, n = 0.0, 0
        for x, y in self.batches(self.val_data, shuffle=False):
            total += nn.functional.cross_entropy(self.model(x), y, reduction="sum").item()
            n += len(y)
        return total / n
