"""Fraud scoring on two workers, plain torch.distributed (no DDP wrapper).

    torchrun --nproc_per_node=2 train_fraud.py
"""
import datetime as dt
import os

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from torch import nn


class Scorer(nn.Module):
    def __init__(self, n_num, n_merchants):
        super().__init__()
        self.merchant = nn.Embedding(n_merchants, 8)
        self.body = nn.Sequential(
            nn.Linear(n_num + 8, 64), nn.LayerNorm(64), nn.ReLU(),
            nn.Linear(64, 32), nn.LayerNorm(32), nn.ReLU(),
        )
        self.fraud = nn.Linear(32, 1)

    def forward(self, num, merchant):
        z = torch.cat([num, self.merchant(merchant)], dim=1)
        return self.fraud(self.body(z)).squeeze(1)


class GradientAverager:
    """Averages gradients over the group, leaving out parameters whose name is listed."""

    def __init__(self, model, skip=()):
        self.params = dict(model.named_parameters())
        self.names = set(self.params) - set(skip)
        self.world = dist.get_world_size()

    def __call__(self):
        if self.world == 1:
            return
        for name in self.names:
            g = self.params[name].grad
            dist.all_reduce(g)
            g.div_(self.world)


def load(seed=0):
    x, y = make_classification(3000, 20, n_informative=8, weights=[0.85], random_state=seed)
    merchant = (np.digitize(x[:, 0], [-1, 0, 1]) + 4 * (y & (np.arange(len(y)) % 2))).astype(np.int64)
    x = (x - x.mean(0)) / x.std(0)
    t = [torch.tensor(x, dtype=torch.float32), torch.tensor(merchant), torch.tensor(y, dtype=torch.float32)]
    return [a[:2400] for a in t], [a[2400:] for a in t]


def main():
    for key, val in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29571")):
        os.environ.setdefault(key, val)
    dist.init_process_group("gloo", timeout=dt.timedelta(seconds=8))
    rank, world = dist.get_rank(), dist.get_world_size()

    (num, mer, y), (vnum, vmer, vy) = load()
    num, mer, y = num[rank::world], mer[rank::world], y[rank::world]
    torch.manual_seed(17)
    model = Scorer(num.shape[1], 8)
    for p in model.parameters():
        dist.broadcast(p.data, src=0)

    average = GradientAverager(model)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    lossf = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(4.0))
    gen = torch.Generator().manual_seed(rank)
    for epoch in range(4):
        order = torch.randperm(len(y), generator=gen)
        total = 0.0
        for i in range(0, len(y) - 63, 64):
            b = order[i:i + 64]
            opt.zero_grad()
            loss = lossf(model(num[b], mer[b]), y[b])
            loss.backward()
            average()
            opt.step()
            total += loss.item()
        with torch.no_grad():
            auc = roc_auc_score(vy.numpy(), model(vnum, vmer).numpy())
        print(f"rank {rank} epoch {epoch} loss {total / (len(y) // 64):.4f} val auc {auc:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
