"""Contrastive matching of pen strokes, data parallel. torchrun --nproc_per_node=2 signature_match.py"""
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Strokes(Dataset):
    def __init__(self, writers=60, seed=0, length=32):
        rng = np.random.default_rng(seed)
        self.base = rng.normal(0, 1, (writers, 6, 2))
        self.t = np.linspace(0, 2 * np.pi, length)
        self.rng = rng

    def __len__(self):
        return 20 * len(self.base)

    def _write(self, w):
        c = self.base[w] + self.rng.normal(0, 0.15, (6, 2))
        waves = np.stack([f(k * self.t) for k in (1, 2, 3) for f in (np.sin, np.cos)])
        return torch.tensor((c.T @ waves), dtype=torch.float32)

    def __getitem__(self, i):
        w = i % len(self.base)
        return self._write(w), self._write(w), w


class StrokeEncoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(2, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 64, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(),
        )
        self.proj = nn.Linear(256, dim)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, s):
        return F.normalize(self.proj(self.conv(s)), dim=-1)

    def pair_loss(self, a, b, writer):
        logits = self(a) @ self(b).T * self.log_scale.exp()
        same = writer[:, None] == writer[None, :]
        off = same & ~torch.eye(len(writer), dtype=torch.bool)
        logits = logits.masked_fill(off, -1e4)
        target = torch.arange(len(writer))
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


class Fitter:
    def __init__(self, encoder, lr=2e-3):
        self.ddp = DDP(encoder)
        self.optim = torch.optim.AdamW(self.ddp.parameters(), lr=lr)

    @property
    def encoder(self):
        return self.ddp.module

    def epoch(self, loader):
        self.ddp.train()
        losses = []
        for a, b, writer in loader:
            loss = self.encoder.pair_loss(a, b, writer)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def retrieval(self, dataset, writers):
        self.ddp.eval()
        a = torch.stack([dataset._write(w) for w in range(writers)])
        b = torch.stack([dataset._write(w) for w in range(writers)])
        sim = self.encoder(a) @ self.encoder(b).T
        return (sim.argmax(1) == torch.arange(writers)).float().mean().item()


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29641")
    rank, world = int(os.getenv("RANK", "0")), int(os.getenv("WORLD_SIZE", "1"))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    data = Strokes(seed=rank + 1)
    data.base = Strokes(seed=0).base
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 40, sampler=sampler, drop_last=True)
    fitter = Fitter(StrokeEncoder())
    for ep in range(4):
        sampler.set_epoch(ep)
        loss = fitter.epoch(loader)
        top1 = fitter.retrieval(data, 60)
        norm = sum(p.detach().norm() ** 2 for p in fitter.encoder.parameters()).sqrt().item()
        print(f"rank {rank} epoch {ep} loss {loss:.4f} top1 {top1:.3f} weight norm {norm:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
