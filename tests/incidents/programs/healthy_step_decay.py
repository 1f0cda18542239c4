"""A plateau, then a cut of the learning rate, then a drop: the old recipe, in a wide CSV."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, minibatches, mlp, seed, write_csv

EPOCHS, CUTS = 54, [22, 40]


def make(folder: Path) -> None:
    seed(25)
    data, model = digits(), mlp(64, 48, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, CUTS, gamma=0.1)
    rows = []
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for batch in minibatches(len(data.x), 12):
            noisy = data.x[batch] + 0.35 * torch.randn(12, 64)
            loss = functional.cross_entropy(model(noisy), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 100
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        rows.append(
            {
                "Epoch": epoch,
                "Learning Rate": schedule.get_last_lr()[0],
                "Train Loss": f"{total:.4f}",
                "Valid Loss": f"{val_loss:.4f}",
                "Valid Acc.": f"{100 * accuracy:.2f}",
            }
        )
        schedule.step()
    write_csv(folder / "log.csv", rows)
