"""torchrun --nproc_per_node=2 train.py"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
import yaml
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler

from data import TideWindows, make_loader
from model import TideNet


def setup():
    for k, v in dict(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29511").items():
        os.environ.setdefault(k, v)
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return dist.get_rank(), dist.get_world_size()


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total = torch.zeros(2)
    for ctx, fut in loader:
        total += torch.tensor([F.l1_loss(model(ctx), fut, reduction="sum").item(), fut.numel()])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    rank, world = setup()
    torch.manual_seed(cfg["seed"])

    train_set = TideWindows(**cfg["data"], seed=cfg["seed"])
    val_set = TideWindows(**{**cfg["data"], "n_series": 16}, seed=cfg["seed"] + 1)
    train_sampler = DistributedSampler(train_set, world, rank, shuffle=True, seed=cfg["seed"])

    train_loader = make_loader(train_set, train=True, sampler=train_sampler, seed=cfg["seed"], **cfg["loader"])
    val_loader = make_loader(val_set, train=False, **cfg["loader"])

    model = DDP(TideNet(cfg["model"]["hidden"], cfg["data"]["horizon"]))
    opt = torch.optim.AdamW(model.parameters(), **cfg["optim"])

    for epoch in range(cfg["epochs"]):
        train_sampler.set_epoch(epoch)
        model.train()
        running = 0.0
        for ctx, fut in train_loader:
            loss = F.mse_loss(model(ctx), fut)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running += loss.item()
        mae = validate(model.module, val_loader)
        if rank == 0:
            print(f"epoch {epoch} steps {len(train_loader)} train_mse {running / len(train_loader):.4f} val_mae {mae:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
