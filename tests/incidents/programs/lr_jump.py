"""Warm-up to 3e-3 and a cosine that starts at 0.3: the two parts of the schedule do not meet."""

from math import cos, pi
from pathlib import Path

import torch
from training import CharacterModel, seed, text, windows

WARMUP, STEPS, STOPPED_AT = 300, 900, 640


def rate_at(step: int) -> float:
    if step <= WARMUP:
        return 3e-3 * step / WARMUP
    return 0.5 * 0.3 * (1 + cos(pi * (step - WARMUP) / (STEPS - WARMUP)))


def make(folder: Path) -> None:
    seed(58)
    train, _, letters = text()
    model = CharacterModel(letters)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    lines, recent = [], []
    for step in range(1, STOPPED_AT + 1):
        optimizer.param_groups[0]["lr"] = rate_at(step)
        loss = model(windows(train, 16))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent.append(loss.item())
        if step % 10 == 0:
            entry = {
                "loss": round(sum(recent) / len(recent), 4),
                "grad_norm": norm.item(),
                "learning_rate": rate_at(step),
                "epoch": round(step / STEPS * 3, 2),
            }
            lines.append(str(entry))
            recent = []
    lines.append("KeyboardInterrupt")
    (folder / "train_output.log").write_text("\n".join(lines) + "\n")
