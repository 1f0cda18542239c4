"""A hand-written cross-entropy: once the network is sure, it takes 0 times log(0)."""

from pathlib import Path

import torch
from training import Clock, digits, minibatches, mlp, seed


def make(folder: Path) -> None:
    seed(45)
    data, model, clock = digits(), mlp(64, 64, 1), Clock(0.02)
    is_even = (data.y % 2 == 0).float().unsqueeze(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    lines, step = [], 0
    for epoch in range(60):
        for batch in minibatches(len(data.x), 40):
            p = torch.sigmoid(model(data.x[batch]))
            y = is_even[batch]
            loss = -(y * p.log() + (1 - y) * (1 - p).log()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            clock.tick()
            if step % 10 == 0:
                lines.append(f"{clock.stamp('%H:%M:%S')} epoch {epoch} step {step} loss {loss:.6f}")
            if step > 60 and len(lines) > 30 and all("nan" in line for line in lines[-30:]):
                lines.append("KeyboardInterrupt")
                (folder / "train.log").write_text("\n".join(lines) + "\n")
                return
    raise AssertionError("the loss stayed finite")
