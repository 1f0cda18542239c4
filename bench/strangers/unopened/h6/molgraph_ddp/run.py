# Toy molecule property regression with a dense GNN, step based training.
import math
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Sampler

N_ATOMS, N_TYPES = 9, 4
TOTAL_STEPS, BATCH, WORLD = 100, 32, 2


class Molecules(Dataset):
    def __init__(self, n, seed):
        r = np.random.default_rng(seed)
        self.types = torch.from_numpy(r.integers(0, N_TYPES, (n, N_ATOMS)))
        a = (r.random((n, N_ATOMS, N_ATOMS)) < 0.3).astype(np.float32)
        self.adj = torch.from_numpy(np.maximum(a, a.transpose(0, 2, 1)))
        charge = torch.tensor([-1.0, -0.3, 0.4, 1.0])[self.types]
        self.energy = torch.einsum("bi,bij,bj->b", charge, self.adj, charge) / N_ATOMS

    def __len__(self):
        return len(self.energy)

    def __getitem__(self, i):
        return self.types[i], self.adj[i], self.energy[i], i


class ShardedSampler(Sampler):
    """Permutation of the epoch, then every world-th element starting at rank."""

    def __init__(self, n, rank, world, seed=0):
        self.n, self.rank, self.world, self.seed, self.epoch = n, rank, world, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return math.floor(self.n / self.world)

    def __iter__(self):
        g = torch.Generator().manual_seed(1000 * self.seed + self.epoch)
        perm = torch.randperm(self.n, generator=g)[: len(self) * self.world]
        return iter(perm[self.rank :: self.world].tolist())


class DenseGNN(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.emb = nn.Embedding(N_TYPES, d)
        self.msg = nn.ModuleList(nn.Linear(d, d) for _ in range(3))
        self.upd = nn.ModuleList(nn.GRUCell(d, d) for _ in range(3))
        self.read = nn.Linear(d, 1)

    def forward(self, types, adj):
        h = self.emb(types)
        b, n, d = h.shape
        for m, u in zip(self.msg, self.upd):
            h = u((adj @ m(h)).reshape(b * n, d), h.reshape(b * n, d)).view(b, n, d)
        return self.read(h.sum(1)).squeeze(-1) / N_ATOMS


def stream(loader, sampler, total_steps):
    step = 0
    while step < total_steps:
        sampler.set_epoch(step // len(loader.dataset))
        for batch in loader:
            yield step, batch
            step += 1
            if step == total_steps:
                return


def worker(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29677")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = Molecules(1280, seed=5)
    sampler = ShardedSampler(len(data), rank, world, seed=1)
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler, drop_last=True)
    net = DDP(DenseGNN())
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 4e-3, total_steps=TOTAL_STEPS)
    for step, (types, adj, energy, idx) in stream(loader, sampler, TOTAL_STEPS):
        loss = nn.functional.smooth_l1_loss(net(types, adj), energy)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        if rank == 0 and step % len(loader) == 0:
            print(f"step {step:4d} loss {loss.item():.4f} lr {sched.get_last_lr()[0]:.1e} ids {idx[:5].tolist()}", flush=True)
    if rank == 0:
        test = Molecules(400, seed=6)
        with torch.no_grad():
            err = (net.module(test.types, test.adj) - test.energy).abs().mean().item()
        print(f"test MAE {err:.4f} (std of target {test.energy.std().item():.4f})")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(WORLD,), nprocs=WORLD)
