"""Warm restarts (SGDR): every restart of the learning rate lifts the loss for some epochs."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, minibatches, mlp, seed, write_csv

EPOCHS, PERIOD = 60, 12


def make(folder: Path) -> None:
    seed(4)
    data, model = digits(), mlp(64, 48, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, PERIOD)
    rows = []
    for epoch in range(EPOCHS):
        total = 0.0
        for batch in minibatches(len(data.x), 24):
            noisy = data.x[batch] + 0.35 * torch.randn(len(batch), 64)  # augmentation
            loss = functional.cross_entropy(model(noisy), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / (len(data.x) // 24)
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        rows.append(
            {
                "epoch": epoch,
                "lr": f"{schedule.get_last_lr()[0]:.6g}",
                "train_loss": f"{total:.5f}",
                "val_loss": f"{val_loss:.5f}",
                "val_acc": f"{accuracy:.4f}",
            }
        )
        schedule.step()
    write_csv(folder / "history.csv", rows)
    (folder / "config.yaml").write_text(
        "model: mlp-48\noptimizer:\n  name: sgd\n  lr: 0.08\n  momentum: 0.9\n"
        "scheduler:\n  name: CosineAnnealingWarmRestarts\n  T_0: 12\nbatch_size: 24\nepochs: 60\n"
    )
