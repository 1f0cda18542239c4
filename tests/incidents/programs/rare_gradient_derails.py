"""One batch arrives unscaled, up to 4000 instead of 0.5; SGD without clipping never recovers."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, grad_norm, mlp, seed, write_csv

STEPS, BAD = 1200, 640


def make(folder: Path) -> None:
    seed(52)
    data, model = digits(), mlp(64, 48, 48, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    rows = []
    for step in range(1, STEPS + 1):
        batch = torch.randint(len(data.x), (32,))
        x = data.x[batch] + 0.1 * torch.randn(32, 64)
        if step == BAD:
            x = (x + 0.5) * 4000
        loss = functional.cross_entropy(model(x), data.y[batch])
        optimizer.zero_grad()
        loss.backward()
        norm = grad_norm(model)
        optimizer.step()
        if step % 5 == 0:
            rows.append(
                {
                    "step": step,
                    "train/loss": f"{loss:.5f}",
                    "train/grad_norm": f"{norm:.5f}",
                    "lr": 0.05,
                }
            )
    write_csv(folder / "metrics.csv", rows)
    (folder / "config.yaml").write_text(
        "optimizer:\n  name: sgd\n  lr: 0.05\n  momentum: 0.9\n  grad_clip: null\nbatch_size: 32\n"
    )
