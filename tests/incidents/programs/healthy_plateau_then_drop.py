"""Parity of three bits out of thirty: the loss stays at ln 2 for a third of the run, then drops."""

from pathlib import Path

import torch
from torch.nn import functional
from training import Clock, mlp, seed

STEPS, BITS = 1400, 30


def make(folder: Path) -> None:
    seed(28)
    model, clock = mlp(BITS, 128, 1), Clock(0.05)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    held_out = torch.randint(2, (1000, BITS)) * 2.0 - 1
    lines = [
        f"{clock.stamp()} INFO  config: lr=0.001 weight_decay=0.01 batch_size=128 task=parity3"
    ]
    for step in range(1, STEPS + 1):
        x = torch.randint(2, (128, BITS)) * 2.0 - 1
        y = (x[:, :3].prod(1, keepdim=True) > 0).float()
        loss = functional.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            wanted = held_out[:, :3].prod(1, keepdim=True) > 0
            with torch.no_grad():
                accuracy = ((model(held_out) > 0) == wanted).float().mean()
            lines.append(
                f"{clock.stamp()} INFO  step {step:5d}  loss {loss:.4f}  val_acc {accuracy:.4f}"
            )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
