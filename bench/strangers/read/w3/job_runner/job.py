"""Preemptible training job: every launch trains a slice of epochs and continues where the last one ended."""
import os
import sys
import tempfile

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import snapshots

TOTAL_EPOCHS = 9


class Job:
    def __init__(self, seed=50):
        torch.manual_seed(seed)
        data = load_breast_cancer()
        x = torch.tensor(data.data, dtype=torch.float32)
        y = torch.tensor(data.target, dtype=torch.float32)
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
        tr, va = order[:450], order[450:]
        mean, std = x[tr].mean(0), x[tr].std(0)
        x = (x - mean) / std
        self.loader_rng = torch.Generator().manual_seed(seed)
        self.train_dl = DataLoader(TensorDataset(x[tr], y[tr]), batch_size=30, shuffle=True, generator=self.loader_rng)
        self.val_dl = DataLoader(TensorDataset(x[va], y[va]), batch_size=64)
        self.model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3, betas=(0.9, 0.999))
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=TOTAL_EPOCHS, eta_min=1e-5)
        self.criterion = nn.BCEWithLogitsLoss()
        self.epoch, self.best = 0, float("inf")

    def train_epoch(self):
        self.model.train()
        for x, y in self.train_dl:
            self.optimizer.zero_grad()
            self.criterion(self.model(x).squeeze(1), y).backward()
            self.optimizer.step()
        self.scheduler.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total = n = 0
        for x, y in self.val_dl:
            total += self.criterion(self.model(x).squeeze(1), y).item() * len(y)
            n += len(y)
        return total / n


def launch(path, slice_epochs):
    job = Job()
    if os.path.exists(path):
        snapshots.restore(path, job)
        print(f"resumed at epoch {job.epoch}")
    for _ in range(min(slice_epochs, TOTAL_EPOCHS - job.epoch)):
        job.train_epoch()
        val = job.validate()
        job.epoch += 1
        job.best = min(job.best, val)
        snapshots.write(path, job)
        print(f"epoch {job.epoch} lr {job.optimizer.param_groups[0]['lr']:.2e} val {val:.5f} best {job.best:.5f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        launch(sys.argv[1], slice_epochs=3)
    else:
        with tempfile.TemporaryDirectory() as tmp:
            for _ in range(3):
                launch(os.path.join(tmp, "job.pt"), slice_epochs=3)
