"""From epoch 3 a square root without a gradient at 0 joins in: every step is skipped and halves the
scale, while the loss itself stays finite.
"""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, minibatches, mlp, seed


def distances(points: torch.Tensor) -> torch.Tensor:
    """Return all distances, those of the points to themselves included."""
    return (points.unsqueeze(0) - points.unsqueeze(1)).pow(2).sum(-1).sqrt()


def make(folder: Path) -> None:
    seed(60)
    data, model = digits(), mlp(64, 48, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    lines, step = ["Using mixed precision: fp16 (autocast + GradScaler)"], 0
    for epoch in range(1, 7):
        if epoch == 3:
            lines.append("metric loss enabled (weight 0.01)")
        for batch in minibatches(len(data.x), 40):
            with torch.autocast("cpu", torch.float16):
                logits = model(data.x[batch])
            loss = functional.cross_entropy(logits.float(), data.y[batch])
            if epoch >= 3:
                loss = loss + 0.01 * distances(logits.float()).mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            before = scaler.get_scale()
            scaler.update()
            step += 1
            if scaler.get_scale() < before:
                lines.append(
                    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to "
                    f"{scaler.get_scale()}"
                )
            if step % 3 == 0:
                lines.append(
                    f"epoch {epoch} step {step} loss {loss.item():.4f} "
                    f"loss_scale {scaler.get_scale():g}"
                )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
