"""torchrun --standalone --nproc_per_node=2 train.py"""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup():
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend)
    rank = dist.get_rank()
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        return rank, torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return rank, torch.device("cpu")


def station_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 24, 3, generator=g)
    y = 0.6 * x[:, -1, 0] + 0.3 * x[:, -6:, 1].mean(1) + 0.2 * torch.tanh(x[:, :, 2].sum(1))
    return TensorDataset(x, y + 0.05 * torch.randn(n, generator=g))


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(3, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        seq, _ = self.rnn(x)
        return self.head(seq[:, -1]).squeeze(-1)


@torch.no_grad()
def validate(model, loader, device):
    """Mean squared error over the validation set, summed over the workers."""
    model.eval()
    acc = torch.zeros(2, device=device)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        acc[0] += (model(x) - y).pow(2).sum()
        acc[1] += len(y)
    dist.all_reduce(acc)
    return (acc[0] / acc[1]).item()


def main():
    rank, device = setup()
    torch.manual_seed(99)
    train_set, val_set = station_data(960, 1), station_data(256, 2)
    sampler = DistributedSampler(train_set, shuffle=True, seed=99, drop_last=True)
    train_loader = DataLoader(train_set, batch_size=32, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=64, sampler=DistributedSampler(val_set, shuffle=False))

    model = DDP(Forecaster().to(device), device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    for epoch in range(4):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()

        if rank == 0:
            mse = validate(model.module, val_loader, device)
            print(f"epoch {epoch}  val mse {mse:.4f}", flush=True)
            torch.save(model.module.state_dict(), f"/tmp/forecaster_{os.getpid()}.pt")
        dist.barrier()

    if rank == 0:
        os.remove(f"/tmp/forecaster_{os.getpid()}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
