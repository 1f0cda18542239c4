"""The curriculum adds five harder classes: the loss steps up at the boundary and falls again."""

from pathlib import Path

import torch
from torch.nn import functional
from training import Clock, digits, grad_norm, mlp, seed

BOUNDARY, STEPS = 500, 1100


def make(folder: Path) -> None:
    seed(51)
    data, model, clock = digits(), mlp(64, 48, 10), Clock(0.3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    easy = torch.nonzero(data.y < 5).squeeze(1)
    lines = [f"{clock.stamp()} curriculum stage 1: classes 0-4 ({len(easy)} samples)"]
    for step in range(1, STEPS + 1):
        if step == BOUNDARY:
            lines.append(
                f"{clock.stamp()} curriculum: switching to stage 2 at step {step}, "
                f"classes 0-9 ({len(data.x)} samples)"
            )
        known = easy if step < BOUNDARY else torch.arange(len(data.x))
        batch = known[torch.randint(len(known), (32,))]
        loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
        optimizer.zero_grad()
        loss.backward()
        norm = grad_norm(model)
        optimizer.step()
        clock.tick()
        if step % 5 == 0:
            lines.append(
                f"{clock.stamp()} step={step} loss={loss:.4f} grad_norm={norm:.3f} lr=5.00e-04"
            )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    (folder / "config.yaml").write_text(
        "optimizer: {name: adamw, lr: 5e-4}\nbatch_size: 32\nmax_steps: 1100\n"
        "curriculum:\n  - {start: 0, classes: [0, 1, 2, 3, 4]}\n  - {start: 500, classes: all}\n"
    )
