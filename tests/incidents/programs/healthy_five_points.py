"""Five lines are the whole log; there is nothing wrong with them."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, minibatches, mlp, seed


def make(folder: Path) -> None:
    seed(8)
    data, model = digits(), mlp(64, 32, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    lines = []
    for epoch in range(1, 6):
        total = 0.0
        for batch in minibatches(len(data.x), 50):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * 50 / len(data.x)
        lines.append(f"epoch {epoch} loss {total:.4f}")
    (folder / "log.txt").write_text("\n".join(lines) + "\n")
