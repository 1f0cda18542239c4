"""`optimizer.step()` was lost in a refactoring; all that is left is the log."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, minibatches, mlp, seed


def make(folder: Path) -> None:
    seed(43)
    data, model = digits(), mlp(64, 64, 10)
    with torch.no_grad():
        model[2].weight.mul_(0.2)
        model[2].bias.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    lines = []
    for epoch in range(1, 21):
        total = 0.0
        for batch in minibatches(len(data.x), 40):
            noisy = data.x[batch] + 0.1 * torch.randn(40, 64)
            loss = functional.cross_entropy(model(noisy), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            total += loss.item() / 30
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        lines.append(
            f"Epoch {epoch:02d}: train loss = {total:.4f}, val loss = {val_loss:.4f}, "
            f"val acc = {100 * accuracy:.2f}%"
        )
    (folder / "output.txt").write_text("\n".join(lines) + "\n")
