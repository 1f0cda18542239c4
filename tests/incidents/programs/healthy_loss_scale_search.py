"""Mixed precision finds its loss scale: some steps are skipped at first and now and then later."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, minibatches, mlp, seed


def make(folder: Path) -> None:
    seed(27)
    data, model = digits(), mlp(64, 48, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=60)
    lines, step = ["Using mixed precision: fp16 (autocast + GradScaler)"], 0
    for epoch in range(1, 21):
        for batch in minibatches(len(data.x), 40):
            with torch.autocast("cpu", torch.float16):
                logits = model(data.x[batch])
            loss = functional.cross_entropy(logits.float(), data.y[batch])
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
            if step % 5 == 0:
                lines.append(
                    f"epoch {epoch} step {step} loss {loss.item():.4f} "
                    f"loss_scale {scaler.get_scale():g}"
                )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
