"""Biased matrix factorisation on simulated film ratings. Run: python train.py"""
import json
import logging
import math
import random
from dataclasses import asdict

import numpy as np
import torch
from torch import nn

from config import Config
from data import make_loaders
from model import MatrixFactorisation

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("films")


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@torch.no_grad()
def rmse(model, loader):
    model.eval()
    sq, n = 0.0, 0
    for users, films, stars in loader:
        pred = model(users, films).clamp(0.5, 5.0)
        sq += (pred - stars).pow(2).sum().item()
        n += stars.numel()
    return math.sqrt(sq / n)


def fit_epoch(model, loader, optimizer, criterion, l2):
    model.train()
    running, seen = 0.0, 0
    for users, films, stars in loader:
        pred = model(users, films)
        mse = criterion(pred, stars)
        loss = mse + l2 * model.penalty(users, films)

        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

        running += mse.item() * stars.numel()
        seen += stars.numel()
    return running / seen


def main():
    cfg = Config()
    seed_everything(cfg.seed)
    log.info("config %s", asdict(cfg))

    loaders = make_loaders(cfg.data, cfg.train.batch_size, cfg.seed)
    mean = loaders["train"].dataset.stars.mean().item()
    model = MatrixFactorisation(cfg.data.n_users, cfg.data.n_films, cfg.train.dim, mean)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.train.lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=cfg.train.lr_decay)

    log.info("mean %.3f, rmse before training: val %.4f", mean, rmse(model, loaders["val"]))
    best, bad_epochs = float("inf"), 0
    with open(cfg.train.log_file, "w") as fh:
        for epoch in range(1, cfg.train.epochs + 1):
            train_mse = fit_epoch(model, loaders["train"], optimizer, criterion, cfg.train.l2)
            val_rmse = rmse(model, loaders["val"])
            lr = scheduler.get_last_lr()[0]
            scheduler.step()
            log.info("epoch %02d lr %.5f train_mse %.4f val_rmse %.4f", epoch, lr, train_mse, val_rmse)
            fh.write(json.dumps({"epoch": epoch, "lr": lr, "train_mse": train_mse, "val_rmse": val_rmse}) + "\n")

            if val_rmse < best:
                best, bad_epochs = val_rmse, 0
                torch.save(
                    {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()},
                    cfg.train.checkpoint,
                )
            else:
                bad_epochs += 1
                if bad_epochs >= cfg.train.patience:
                    log.info("no improvement for %d epochs, stopping", bad_epochs)
                    break

    ckpt = torch.load(cfg.train.checkpoint)
    model.load_state_dict(ckpt["model"])
    log.info("restored epoch %d", ckpt["epoch"])
    log.info("test_rmse=%.4f", rmse(model, loaders["test"]))


if __name__ == "__main__":
    main()
