"""House prices in plain currency: a target of 400,000 is out of reach in steps of a thousandth."""

from pathlib import Path

import torch
from torch.nn import functional
from training import minibatches, mlp, seed

EPOCHS = 30


def make(folder: Path) -> None:
    seed(54)
    x = torch.randn(1200, 8)
    price = 400_000 + 120_000 * x[:, :1] + 60_000 * x[:, 1:2] + 20_000 * torch.randn(1200, 1)
    model = mlp(8, 64, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    lines = []
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for batch in minibatches(1000, 50):
            loss = functional.mse_loss(model(x[batch]), price[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 20
        with torch.no_grad():
            output = model(x[1000:])
            val_loss = functional.mse_loss(output, price[1000:])
            error = (output - price[1000:]).abs().mean()
        lines += [
            f"Epoch {epoch}/{EPOCHS}",
            f"20/20 - 0s - 2ms/step - loss: {total:.1f}"
            f" - val_loss: {val_loss:.1f} - val_mae: {error:.1f}",
        ]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "config.yaml").write_text(
        "data: {target: sale_price, scale_features: true}\n"
        "train: {loss: mse, optimizer: adam, learning_rate: 0.001, batch_size: 50, epochs: 30}\n"
    )
