"""A regression that has converged: the loss stays at the variance of the label noise."""

from pathlib import Path

import torch
from torch.nn import functional
from training import Clock, minibatches, mlp, seed

EPOCHS = 80


def make(folder: Path) -> None:
    seed(10)
    x = torch.randn(2000, 6)
    y = (x[:, :1] * 1.5 - x[:, 1:2].tanh() * 2 + x[:, 2:3]) + torch.randn(2000, 1)
    model, clock = mlp(6, 12, 1), Clock(1.9)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    lines = []
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for batch in minibatches(1600, 32):
            loss = functional.mse_loss(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * 32 / 1600
        with torch.no_grad():
            val_loss = functional.mse_loss(model(x[1600:]), y[1600:])
        clock.tick()
        lines.append(
            f'time="{clock.stamp("%Y-%m-%dT%H:%M:%SZ")}" level=info msg="epoch finished" '
            f"epoch={epoch} train_loss={total:.5f} val_loss={val_loss:.5f} lr=0.002"
        )
    (folder / "trainer.log").write_text("\n".join(lines) + "\n")
