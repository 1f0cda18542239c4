"""Plain SGD with steps too large: the loss grows tenfold per step until it overflows."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, grad_norm, mlp, seed

STEPS, RATE = 60, 0.3


def make(folder: Path) -> None:
    seed(40)
    data, model = digits(), mlp(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    lines = ["device: cpu", f"Namespace(batch_size=64, lr={RATE}, steps={STEPS}, loss='mse')"]
    for step in range(1, STEPS + 1):
        batch = torch.randint(len(data.x), (64,))
        wanted = functional.one_hot(data.y[batch], 10).float()
        loss = (model(data.x[batch]) - wanted).pow(2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = grad_norm(model)
        optimizer.step()
        lines.append(f"step {step:3d} loss {loss.item():.5g} grad_norm {norm:.5g}")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
