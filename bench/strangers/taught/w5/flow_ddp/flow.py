# torchrun --nproc_per_node=N flow.py   (also runs alone)
import math
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def setup():
    os.environ.setdefault("RANK", "0")
    os.environ.setdefault("WORLD_SIZE", "1")
    os.environ.setdefault("LOCAL_RANK", "0")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29871")
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return torch.device("cpu")


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = 2 * torch.tanh(s)
        b = b * torch.exp(s) + t
        return torch.cat((b, a) if self.flip else (a, b), 1), s.squeeze(1)


class Flow(nn.Module):
    def __init__(self, n=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(n))

    def forward(self, x):
        logdet = x.new_zeros(len(x))
        for l in self.layers:
            x, d = l(x)
            logdet = logdet + d
        return 0.5 * (x ** 2).sum(1) + math.log(2 * math.pi) - logdet


def moons(n, seed):
    g = torch.Generator().manual_seed(seed)
    th = torch.rand(n, generator=g) * math.pi
    up = torch.rand(n, generator=g) < 0.5
    x = torch.where(up, th.cos(), 1 - th.cos())
    y = torch.where(up, th.sin(), 0.5 - th.sin())
    return torch.stack([x, y], 1) + 0.08 * torch.randn(n, 2, generator=g)


@torch.no_grad()
def validation_nll(model, loader, device):
    model.eval()
    acc = torch.zeros(2, device=device)
    for (x,) in loader:
        nll = model(x.to(device))
        acc += torch.stack([nll.sum(), nll.new_tensor(float(len(nll)))])
    dist.all_reduce(acc)
    return (acc[0] / acc[1]).item()


def main():
    device = setup()
    rank = dist.get_rank()
    torch.manual_seed(0)
    train_set, val_set = TensorDataset(moons(4000, 0)), TensorDataset(moons(1000, 1))
    sampler = DistributedSampler(train_set, shuffle=True)
    train = DataLoader(train_set, 128, sampler=sampler, drop_last=True)
    val = DataLoader(val_set, 250, sampler=DistributedSampler(val_set, shuffle=False))
    flow = Flow().to(device)
    model = DDP(flow, device_ids=[device.index] if device.type == "cuda" else None)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    best, bad = math.inf, 0
    for epoch in range(12):
        sampler.set_epoch(epoch)
        model.train()
        for (x,) in train:
            loss = model(x.to(device)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        nll = validation_nll(flow, val, device)
        # nll is the same number on all ranks, so all of them leave together
        bad = 0 if nll < best - 1e-3 else bad + 1
        if rank == 0:
            print(f"epoch {epoch} nll {nll:.4f}", flush=True)
            if nll < best:
                torch.save(flow.state_dict(), "/tmp/flow_best.pt")
        best = min(best, nll)
        dist.barrier()
        if bad >= 4:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
