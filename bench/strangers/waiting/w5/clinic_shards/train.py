import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from clinics import FEATURES, rank_dataset


class RiskModel(nn.Module):
    def __init__(self, width=256, depth=4):
        super().__init__()
        self.inp = nn.Linear(len(FEATURES), width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, width))
            for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + b(h)
        return self.out(h).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", required=True)
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--batch-size", type=int, default=512)
    ap.add_argument("--lr", type=float, default=3e-4)
    ap.add_argument("--pos-weight", type=float, default=12.0)
    args = ap.parse_args()

    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    torch.manual_seed(7)

    data = rank_dataset(args.root, rank, world)
    print(f"rank {rank}: {len(data)} stays", flush=True)
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, num_workers=4, pin_memory=True, drop_last=True,
                        generator=torch.Generator().manual_seed(7 + rank))
    model = DDP(RiskModel().to(device), device_ids=[local])
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(args.pos_weight, device=device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)

    for epoch in range(args.epochs):
        model.train()
        total = torch.zeros(2, device=device)
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = criterion(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += torch.stack([loss.detach() * len(y), torch.tensor(float(len(y)), device=device)])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} bce {(total[0] / total[1]).item():.4f}", flush=True)
            torch.save(model.module.state_dict(), "risk.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
