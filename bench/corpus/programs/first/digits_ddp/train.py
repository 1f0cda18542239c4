"""Data-parallel training on the CPU; start with torchrun --nproc-per-node 2 train.py"""

import os
import random
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

SEED = int(os.environ.get("SEED", "0"))


def ddp_setup():
    dist.init_process_group(backend="gloo", timeout=timedelta(seconds=60))


class DigitRows(Dataset):
    def __init__(self, train):
        digits = load_digits()
        order = np.random.RandomState(SEED).permutation(len(digits.target))
        order = order[:1440] if train else order[1440:1796]
        self.x = torch.tensor(digits.data[order] / 16.0, dtype=torch.float32)
        self.y = torch.tensor(digits.target[order], dtype=torch.long)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class ResidualMLP(nn.Module):
    def __init__(self, width=64, depth=2):
        super().__init__()
        self.stem = nn.Linear(64, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU())
            for _ in range(depth)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Trainer:
    def __init__(self, model, train_data, test_data, optimizer, save_every):
        self.rank = int(os.environ["RANK"])
        self.train_data = train_data
        self.test_data = test_data
        self.optimizer = optimizer
        self.save_every = save_every
        self.model = DDP(model)

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        output = self.model(source)
        loss = F.cross_entropy(output, targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch):
        self.train_data.sampler.set_epoch(epoch)
        self.model.train()
        losses = [self._run_batch(source, targets) for source, targets in self.train_data]
        return sum(losses) / len(losses)

    def _test(self):
        self.model.eval()
        totals = torch.zeros(2)
        with torch.no_grad():
            for source, targets in self.test_data:
                predictions = self.model(source).argmax(dim=1)
                totals[0] += (predictions == targets).sum()
                totals[1] += len(targets)
        dist.all_reduce(totals)
        return (totals[0] / totals[1]).item()

    def _save_checkpoint(self, epoch):
        Path("checkpoints").mkdir(exist_ok=True)
        torch.save(self.model.module.state_dict(), "checkpoints/checkpoint.pt")
        print(f"Epoch {epoch} | Training checkpoint saved at checkpoints/checkpoint.pt")

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            loss = self._run_epoch(epoch)
            accuracy = self._test()
            print(
                f"[rank {self.rank}] Epoch {epoch} | Batchsize: {self.train_data.batch_size} | "
                f"Steps: {len(self.train_data)} | loss {loss:.4f} | test accuracy {accuracy:.4f}",
                flush=True,
            )
            if self.rank == 0 and (epoch + 1) % self.save_every == 0:
                self._save_checkpoint(epoch)


def main(total_epochs=12, save_every=6, batch_size=32):
    ddp_setup()
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)

    model = ResidualMLP()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    train_set, test_set = DigitRows(train=True), DigitRows(train=False)
    train_data = DataLoader(
        train_set, batch_size=batch_size, sampler=DistributedSampler(train_set, seed=SEED)
    )
    test_data = DataLoader(
        test_set, batch_size=128, sampler=DistributedSampler(test_set, shuffle=False)
    )
    Trainer(model, train_data, test_data, optimizer, save_every).train(total_epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
