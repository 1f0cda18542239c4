"""The checkpoint held the weights only: Adam starts from nothing and throws the weights about."""

from pathlib import Path

import torch
from torch.nn import functional
from training import Clock, mlp, seed

RESUMED_AT, STEPS, RATE = 1000, 1400, 3e-3


def make(folder: Path) -> None:
    seed(48)
    x = torch.randn(3000, 5)
    y = x[:, :1] * 1.5 - x[:, 1:2].relu() * 2 + x[:, 2:3] * x[:, 3:4]
    model, clock = mlp(5, 256, 256, 256, 1), Clock(0.6)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    lines = []
    for step in range(1, STEPS + 1):
        batch = torch.randint(len(x), (64,))
        loss = functional.mse_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        stamp = clock.stamp("[%m-%d %H:%M:%S]")
        if step % 5 == 0:
            lines.append(f"{stamp} step: {step}, loss: {loss:.5f}, lr: {RATE:.2e}")
        if step == RESUMED_AT:
            optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
            lines += [
                f"{stamp} saving checkpoint to runs/surrogate/ckpt_{step}.pt",
                f"{stamp} received SIGTERM, exiting",
                f"{stamp} resuming from runs/surrogate/ckpt_{step}.pt at step {step}",
                f"{stamp} loaded model weights: <All keys matched successfully>",
            ]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
