"""torchrun --nproc_per_node=2 train.py   (or simply: python train.py)"""
import os
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from cluster import barrier, join, leave
from dataset import friedman


@dataclass
class Config:
    epochs: int = 8
    batch: int = 40
    lr: float = 3e-3
    seed: int = 1234
    save_every: int = 1
    max_epochs_per_launch: int = 4
    path: str = "friedman.ckpt"


def build():
    return nn.Sequential(nn.Linear(10, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))


def unwrap(model):
    return model.module if isinstance(model, DDP) else model


def launch(cfg, rank, world):
    torch.manual_seed(cfg.seed)
    model = build()
    if world > 1:
        model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5)
    first = 0
    if os.path.exists(cfg.path):
        ckpt = torch.load(cfg.path, map_location="cpu")
        unwrap(model).load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        first = ckpt["epoch"]
        if rank == 0:
            print("resuming at epoch", first)

    train_set, test_set = friedman(1600, 0), friedman(400, 1)
    sampler = DistributedSampler(train_set, num_replicas=world, rank=rank, shuffle=True, seed=cfg.seed)
    loader = DataLoader(train_set, batch_size=cfg.batch, sampler=sampler, drop_last=True)
    todo = range(first, cfg.epochs)[: cfg.max_epochs_per_launch]
    for i, epoch in enumerate(todo):
        sampler.set_epoch(i)
        model.train()
        running = torch.zeros(())
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            x, y = test_set.tensors
            test = nn.functional.mse_loss(unwrap(model)(x).squeeze(1), y)
        if rank == 0:
            print(f"epoch {epoch}  train {running / len(loader):.4f}  test {test:.4f}  first rows {list(sampler)[:4]}")
            if (epoch + 1) % cfg.save_every == 0:
                torch.save({"epoch": epoch + 1, "model": unwrap(model).state_dict(),
                            "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, cfg.path)
        barrier()
    return todo.stop if len(todo) else cfg.epochs


if __name__ == "__main__":
    cfg = Config()
    rank, world = join()
    while launch(cfg, rank, world) < cfg.epochs:
        pass
    barrier()
    if rank == 0:
        os.remove(cfg.path)
    leave()
