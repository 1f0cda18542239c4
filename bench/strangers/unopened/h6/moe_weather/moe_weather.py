import os
import logging

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

logging.basicConfig(level=logging.INFO, format="%(message)s")


class Expert(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, h), nn.GELU(), nn.Linear(h, d))

    def forward(self, x):
        return self.net(x)


class SwitchLayer(nn.Module):
    """Top-1 routed mixture of experts, only the chosen rows go through an expert."""

    def __init__(self, d, h, n_experts):
        super().__init__()
        self.router = nn.Linear(d, n_experts)
        self.experts = nn.ModuleList([Expert(d, h) for _ in range(n_experts)])

    def forward(self, x):
        prob = self.router(x).softmax(-1)
        gate, choice = prob.max(-1)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows = torch.nonzero(choice == e).flatten()
            if rows.numel() == 0:
                continue
            out = out.index_add(0, rows, expert(x[rows]) * gate[rows, None])
        balance = (prob.mean(0) * torch.bincount(choice, minlength=prob.shape[1]) / len(x)).sum() * prob.shape[1]
        return x + out, balance


class WeatherNet(nn.Module):
    def __init__(self, n_in, d=32, n_experts=12):
        super().__init__()
        self.inp = nn.Linear(n_in, d)
        self.moe1 = SwitchLayer(d, 64, n_experts)
        self.moe2 = SwitchLayer(d, 64, n_experts)
        self.norm = nn.LayerNorm(d)
        self.out = nn.Linear(d, 1)

    def forward(self, x):
        h, b1 = self.moe1(torch.tanh(self.inp(x)))
        h, b2 = self.moe2(self.norm(h))
        return self.out(h).squeeze(-1), b1 + b2


def stations(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10)).astype(np.float32)
    regime = (x[:, 0] > 0).astype(int) * 2 + (x[:, 1] > 0)
    coef = np.random.default_rng(0).normal(size=(4, 10)).astype(np.float32)
    y = (x * coef[regime]).sum(1) + rng.normal(0, 0.1, n).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))


def run(rank, world, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(2)
    x, y = stations(2048, 1)
    x, y = x[rank::world], y[rank::world]
    net = DDP(WeatherNet(10))
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    g = torch.Generator().manual_seed(rank)
    for epoch in range(5):
        order = torch.randperm(len(x), generator=g)
        for idx in order.split(32):
            pred, balance = net(x[idx])
            mse = nn.functional.mse_loss(pred, y[idx])
            loss = mse + 0.01 * balance
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            xt, yt = stations(512, 9)
            with torch.no_grad():
                r2 = 1 - nn.functional.mse_loss(net.module(xt)[0], yt) / yt.var()
            logging.info("epoch %d mse %.4f test R2 %.3f", epoch, mse.item(), r2.item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(2, 29667), nprocs=2, join=True)
