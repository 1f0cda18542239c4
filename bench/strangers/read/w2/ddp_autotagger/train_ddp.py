"""Multi-label music tagging with DDP. torchrun --nproc_per_node=4 train_ddp.py"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler

N_TAGS = 6


class Clips(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        basis = torch.randn(N_TAGS, 40, generator=torch.Generator().manual_seed(99))
        self.tags = (torch.rand(n, N_TAGS, generator=g) < 0.3).float()
        self.feats = self.tags @ basis + 0.8 * torch.randn(n, 40, generator=g)

    def __len__(self):
        return len(self.feats)

    def __getitem__(self, i):
        return self.feats[i], self.tags[i]


def init_process():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29655")
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=world)
    if backend == "nccl":
        local = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(local)
        return rank, torch.device("cuda", local)
    return rank, torch.device("cpu")


def loader_for(dataset, batch_size, train):
    sampler = DistributedSampler(dataset, shuffle=train, seed=4, drop_last=train)
    batches = BatchSampler(sampler, batch_size, drop_last=train)
    return DataLoader(dataset, batch_sampler=batches)


def begin_epoch(loader, epoch):
    if isinstance(loader.sampler, DistributedSampler):
        loader.sampler.set_epoch(epoch)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    stats = torch.zeros(2, device=device)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        stats[0] += nn.functional.binary_cross_entropy_with_logits(model(x), y, reduction="sum")
        stats[1] += y.numel()
    dist.all_reduce(stats)
    return (stats[0] / stats[1]).item()


def main():
    rank, device = init_process()
    torch.manual_seed(4)
    net = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, N_TAGS)).to(device)
    model = DDP(net, device_ids=[device.index] if device.type == "cuda" else None)
    torch.manual_seed(4 + rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    train, val = loader_for(Clips(1024, 1), 32, True), loader_for(Clips(256, 2), 64, False)

    for epoch in range(5):
        begin_epoch(train, epoch)
        model.train()
        for x, y in train:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        score = evaluate(model, val, device)
        if rank == 0:
            print(f"epoch {epoch} train {loss.item():.4f} val {score:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
