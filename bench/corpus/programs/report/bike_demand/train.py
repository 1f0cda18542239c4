"""Train the hourly demand model.

The target is log1p(count), so the RMSE on that scale is the usual RMSLE.
"""
import logging
import os
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from data import CATEGORICAL, NUMERIC, build_datasets
from model import DemandNet

logging.basicConfig(
    level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S"
)
log = logging.getLogger("demand")


@dataclass
class Config:
    seed: int = int(os.environ.get("SEED", "0"))
    rows: int = 5000
    batch_size: int = 96
    epochs: int = 8
    lr: float = 5e-3
    weight_decay: float = 1e-3
    huber_delta: float = 0.5
    checkpoint: str = "demand.pt"


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_optimizer(model, cfg):
    # no decay for embeddings and biases
    decay, no_decay = [], []
    for name, p in model.named_parameters():
        (no_decay if p.ndim < 2 or "embeddings" in name else decay).append(p)
    groups = [
        {"params": decay, "weight_decay": cfg.weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=cfg.lr)


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    preds, targets = [], []
    for cats, nums, y in loader:
        preds.append(model(cats, nums))
        targets.append(y)
    pred, y = torch.cat(preds), torch.cat(targets)
    rmsle = torch.sqrt(torch.mean((pred - y) ** 2)).item()
    r2 = 1.0 - ((y - pred) ** 2).sum().item() / ((y - y.mean()) ** 2).sum().item()
    return criterion(pred, y).item(), rmsle, r2


def main():
    cfg = Config()
    seed_everything(cfg.seed)
    log.info("config: %s", cfg)

    train_set, valid_set, mean_target = build_datasets(cfg.rows, seed=2012)
    train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid_set, batch_size=1024)

    model = DemandNet(list(CATEGORICAL.values()), len(NUMERIC), output_bias=mean_target)
    log.info("model has %d parameters", sum(p.numel() for p in model.parameters()))
    optimizer = make_optimizer(model, cfg)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, T_max=cfg.epochs * len(train_loader), eta_min=1e-5
    )
    criterion = nn.HuberLoss(delta=cfg.huber_delta)

    best = float("inf")
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        total, seen = 0.0, 0
        for cats, nums, y in train_loader:
            pred = model(cats, nums)
            loss = criterion(pred, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(y)
            seen += len(y)

        val_loss, rmsle, r2 = evaluate(model, valid_loader, criterion)
        log.info(
            "epoch %02d train_loss=%.5f valid_loss=%.5f valid_rmsle=%.4f valid_r2=%.4f lr=%.2e",
            epoch, total / seen, val_loss, rmsle, r2, scheduler.get_last_lr()[0],
        )
        best = min(best, rmsle)
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch},
            cfg.checkpoint,
        )

    log.info("last checkpoint in %s, best rmsle on the way %.4f", cfg.checkpoint, best)
    log.info("final rmsle: %.4f (r2 %.4f)", rmsle, r2)


if __name__ == "__main__":
    main()
