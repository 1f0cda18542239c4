"""A sweep's placeholder stayed in the configuration: the learning rate is 0."""

from pathlib import Path

import torch
from torch.nn import functional
from training import Clock, digits, evaluate, minibatches, mlp, seed


def make(folder: Path) -> None:
    seed(41)
    data, model, clock = digits(), mlp(64, 64, 10), Clock(3.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    lines = []
    for epoch in range(1, 16):
        total = 0.0
        for batch in minibatches(len(data.x), 32):
            noisy = data.x[batch] + 0.1 * torch.randn(32, 64)
            loss = functional.cross_entropy(model(noisy), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 37
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        clock.tick()
        lines.append(
            f"[{clock.stamp()}] INFO epoch={epoch} train_loss={total:.4f} "
            f"val_loss={val_loss:.4f} val_acc={accuracy:.4f}"
        )
    (folder / "run.log").write_text("\n".join(lines) + "\n")
    (folder / "config.yaml").write_text(
        "seed: 41\nmodel:\n  hidden: 64\noptimizer:\n  name: adamw\n  lr: 0.0  # set by the sweep\n"
        "  weight_decay: 0.01\ntrain:\n  epochs: 15\n  batch_size: 32\n"
    )
