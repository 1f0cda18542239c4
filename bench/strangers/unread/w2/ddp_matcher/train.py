"""Two-tower text/image matching under DDP, batches drawn by our own batch sampler.
torchrun --nproc_per_node=2 train.py   (a plain `python train.py` runs one rank)"""
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Sampler

ACCUM = 2


class Pairs(Dataset):
    def __init__(self, n, seed):
        w = torch.Generator().manual_seed(123)
        a, b = torch.randn(8, 24, generator=w), torch.randn(8, 32, generator=w)
        g = torch.Generator().manual_seed(seed)
        z = torch.randn(n, 8, generator=g)
        self.text = z @ a + 0.3 * torch.randn(n, 24, generator=g)
        self.image = z @ b + 0.3 * torch.randn(n, 32, generator=g)

    def __len__(self):
        return len(self.text)

    def __getitem__(self, i):
        return self.text[i], self.image[i]


class ShardedBatches(Sampler):
    """Every rank sees its own slice of the same per-epoch permutation, full batches only."""

    def __init__(self, n, batch_size, rank, world, seed):
        self.n, self.batch_size, self.rank, self.world, self.seed = n, batch_size, rank, world, seed
        self.epoch = 0

    def __len__(self):
        return self.n // (self.batch_size * self.world)

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed * 100003 + self.epoch)
        mine = torch.randperm(self.n, generator=g)[self.rank::self.world]
        for k in range(len(self)):
            yield mine[k * self.batch_size:(k + 1) * self.batch_size].tolist()


class Towers(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.text = nn.Sequential(nn.Linear(24, 64), nn.GELU(), nn.Linear(64, d))
        self.image = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, d))
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, t, i):
        return F.normalize(self.text(t), dim=-1), F.normalize(self.image(i), dim=-1), self.log_scale.clamp(max=4.6).exp()


def contrastive(t, i, scale):
    logits = scale * t @ i.T
    target = torch.arange(len(t), device=t.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29671")
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = DistributedDataParallel(Towers())
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data, held = Pairs(1024, 1), Pairs(128, 2)
    batches = ShardedBatches(len(data), 32, rank, world, seed=7)
    loader = DataLoader(data, batch_sampler=batches)

    for epoch in range(4):
        batches.epoch = epoch
        model.train()
        opt.zero_grad()
        for k, (t, i) in enumerate(loader):
            boundary = (k + 1) % ACCUM == 0 or k + 1 == len(loader)
            window = ACCUM if k < len(loader) - len(loader) % ACCUM else len(loader) % ACCUM
            with contextlib.nullcontext() if boundary else model.no_sync():
                loss = contrastive(*model(t, i))
                (loss / window).backward()
            if boundary:
                opt.step()
                opt.zero_grad()
        if rank == 0:
            model.eval()
            with torch.no_grad():
                t, i, _ = model.module(held.text, held.image)
            top1 = ((t @ i.T).argmax(1) == torch.arange(len(t))).float().mean().item()
            print(f"epoch {epoch} loss {loss.item():.4f} held-out top1 {top1:.3f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
