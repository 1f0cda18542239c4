"""A hundred digits, some with a wrong label, and a network that learns them by heart."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, minibatches, mlp, seed, write_csv

EPOCHS = 80


def make(folder: Path) -> None:
    seed(44)
    data, model = digits(train=100), mlp(64, 128, 10)
    wrong = torch.randperm(100)[:25]
    data.y[wrong] = torch.randint(10, (25,))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    rows = []
    for epoch in range(1, EPOCHS + 1):
        for batch in minibatches(100, 10):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        train_loss, train_accuracy = evaluate(model, data.x, data.y)
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        rows.append(
            {
                "epoch": epoch,
                "train_loss": f"{train_loss:.5f}",
                "train_acc": f"{train_accuracy:.4f}",
                "val_loss": f"{val_loss:.5f}",
                "val_acc": f"{accuracy:.4f}",
            }
        )
    write_csv(folder / "history.csv", rows)
