"""Energy use in kilowatt-hours: a squared error of two hundred thousand is where one starts."""

from pathlib import Path

import torch
from torch.nn import functional
from training import Clock, minibatches, mlp, seed

EPOCHS = 60


def make(folder: Path) -> None:
    seed(23)
    x = torch.randn(2400, 5)
    kwh = 420 + 180 * x[:, :1] - 150 * x[:, 1:2].relu() + 90 * x[:, 2:3] * x[:, 3:4]
    kwh = kwh + 40 * torch.randn(2400, 1)
    model, clock = mlp(5, 64, 64, 1), Clock(2.7)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    lines = []
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for batch in minibatches(2000, 50):
            loss = functional.mse_loss(model(x[batch]), kwh[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 40
        with torch.no_grad():
            output = model(x[2000:])
            val_loss = functional.mse_loss(output, kwh[2000:])
            error = (output - kwh[2000:]).abs().mean()
        clock.tick()
        lines.append(
            f"{clock.stamp()},{clock.jitter.randrange(1000):03d} - trainer - INFO - "
            f"epoch {epoch:3d}/{EPOCHS} train_loss {total:.2f} val_loss {val_loss:.2f}"
            f" val_mae {error:.2f}"
        )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "config.yaml").write_text(
        "data:\n  target: consumption_kwh\n  normalise_target: false\n"
        "train:\n  loss: mse\n  lr: 3e-3\n  batch_size: 50\n  epochs: 60\n"
    )
