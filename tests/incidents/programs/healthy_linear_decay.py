"""The learning rate falls linearly and is exactly 0 at the last step, as Trainer does it."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, evaluate, grad_norm, minibatches, mlp, seed

EPOCHS, PER_EPOCH, LOG_EVERY = 10, 48, 8


def make(folder: Path) -> None:
    seed(12)
    data, model = digits(), mlp(64, 48, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    total = EPOCHS * PER_EPOCH
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total)
    lines, recent, everything, step = [], [], [], 0
    for epoch in range(1, EPOCHS + 1):
        for batch in minibatches(len(data.x), len(data.x) // PER_EPOCH):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            norm = grad_norm(model)
            optimizer.step()
            schedule.step()
            step += 1
            recent.append(loss.item())
            everything.append(loss.item())
            if step % LOG_EVERY == 0:
                entry = {
                    "loss": round(sum(recent) / len(recent), 4),
                    "grad_norm": norm,
                    "learning_rate": max(0.0, schedule.get_last_lr()[0]) if step < total else 0.0,
                    "epoch": round(step / PER_EPOCH, 2),
                }
                lines.append(str(entry))
                recent = []
        val_loss, accuracy = evaluate(model, data.x_val, data.y_val)
        entry = {"eval_loss": val_loss, "eval_accuracy": accuracy, "epoch": float(epoch)}
        lines.append(str(entry))
    lines.append(
        str(
            {
                "train_runtime": 12.4471,
                "train_loss": sum(everything) / total,
                "epoch": float(EPOCHS),
            }
        )
    )
    (folder / "trainer_output.txt").write_text("\n".join(lines) + "\n")
