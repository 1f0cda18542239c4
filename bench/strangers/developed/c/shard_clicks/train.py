"""Click-through model on sharded logs.   torchrun --nproc_per_node=4 train.py"""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from stream import ClickStream


def args_():
    p = argparse.ArgumentParser()
    p.add_argument("--train-shards", type=int, default=10)
    p.add_argument("--valid-shards", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


class Worker:
    def __init__(self, a):
        self.a = a
        self.rank = int(os.environ.get("RANK", "0"))
        self.world = int(os.environ.get("WORLD_SIZE", "1"))
        if self.world > 1:
            dist.init_process_group("gloo")
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
        self.model = DistributedDataParallel(model) if self.world > 1 else model
        self.opt = torch.optim.Adam(self.model.parameters(), lr=a.lr)
        self.bce = nn.BCEWithLogitsLoss()
        mine = range(self.rank, a.train_shards, self.world)
        self.train_stream = ClickStream(mine, seed=self.rank)
        self.train_dl = DataLoader(self.train_stream, a.batch_size)
        held = range(a.train_shards, a.train_shards + a.valid_shards)
        self.valid_dl = DataLoader(ClickStream(held, shuffle=False), 256)

    def train_epoch(self, epoch):
        self.train_stream.set_epoch(epoch)
        self.model.train()
        for x, y in self.train_dl:
            self.opt.zero_grad()
            self.bce(self.model(x), y).backward()
            self.opt.step()

    @torch.no_grad()
    def valid(self):
        net = self.model.module if self.world > 1 else self.model
        net.eval()
        loss = n = 0
        for x, y in self.valid_dl:
            loss += self.bce(net(x), y).item() * len(y)
            n += len(y)
        return loss / n

    def run(self):
        for epoch in range(self.a.epochs):
            self.train_epoch(epoch)
            if self.rank == 0:
                print(f"epoch {epoch} valid logloss {self.valid():.4f}", flush=True)
        if self.world > 1:
            dist.destroy_process_group()


if __name__ == "__main__":
    Worker(args_()).run()
