"""The same prices under SGD: the first gradients are of the size of the target and it blows up."""

from pathlib import Path

import torch
from torch.nn import functional
from training import minibatches, mlp, seed


def make(folder: Path) -> None:
    seed(55)
    x = torch.randn(1200, 8)
    price = 400_000 + 120_000 * x[:, :1] + 60_000 * x[:, 1:2] + 20_000 * torch.randn(1200, 1)
    model = mlp(8, 64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    lines = ["{'lr': 0.001, 'optimizer': 'sgd', 'batch_size': 50, 'target': 'sale_price'}"]
    for step, batch in enumerate(minibatches(1000, 50), start=1):
        loss = functional.mse_loss(model(x[batch]), price[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lines.append(f"Epoch [1/10], Step [{step}/20], Loss: {loss.item():.4f}")
    (folder / "output.log").write_text("\n".join(lines) + "\n")
