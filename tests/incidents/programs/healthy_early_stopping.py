"""Early stopping does its work: the validation loss turns, training ends, the best is kept."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, minibatches, mlp, seed

PATIENCE = 6


def make(folder: Path) -> None:
    seed(21)
    data, model = digits(train=400), mlp(64, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    lines, best, best_epoch = [], float("inf"), 0
    for epoch in range(1, 101):
        total = 0.0
        for batch in minibatches(len(data.x), 10):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 40
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        lines += [
            f"Epoch {epoch}/100",
            f"40/40 - 0s - 3ms/step - loss: {total:.4f} - val_accuracy: {accuracy:.4f}"
            f" - val_loss: {val_loss:.4f}",
        ]
        if val_loss < best:
            best, best_epoch = val_loss, epoch
        elif epoch - best_epoch >= PATIENCE:
            break
    lines += [
        f"Epoch {epoch}: early stopping",
        f"Restoring model weights from the end of the best epoch: {best_epoch}.",
    ]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
