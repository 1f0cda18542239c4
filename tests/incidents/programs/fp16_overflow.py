"""Everything in half precision: a sum of squares passes 65504 and the first loss is already inf."""

import json
from pathlib import Path

import torch
from training import digits, minibatches, mlp, seed


def make(folder: Path) -> None:
    seed(59)
    data, model = digits(), mlp(64, 64, 64).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    lines, step = [], 0
    for epoch in range(1, 4):
        for batch in minibatches(len(data.x), 100):
            pictures = ((data.x[batch] + 0.5) * 255).half()
            loss = (model(pictures) - pictures).pow(2).sum() / 100
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            lines.append(f"epoch {epoch} step {step} loss {loss.item():.4f} lr 0.001")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    settings = {
        "fp16": True,
        "loss_scale": None,
        "lr": 1e-3,
        "batch_size": 100,
        "task": "autoencoder",
    }
    (folder / "config.json").write_text(json.dumps(settings, indent=2) + "\n")
