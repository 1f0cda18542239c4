"""Continued training warms the learning rate up again: the loss rises first, then falls below."""

from pathlib import Path

import torch
from training import CharacterModel, seed, text, windows

WARMUP, STEPS, PEAK = 80, 1000, 1.5e-2


def train(model: CharacterModel, numbers: torch.Tensor, rates: list[float]) -> list[list[float]]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    rows = []
    for rate in rates:
        optimizer.param_groups[0]["lr"] = rate
        loss = model(windows(numbers, 16))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rows.append([loss.item(), float(norm), rate])
    return rows


def make(folder: Path) -> None:
    seed(3)
    numbers, _, letters = text()
    model = CharacterModel(letters)
    train(
        model, numbers, [3e-3 * (1 - i / 800) for i in range(800)]
    )  # the checkpoint we start from
    rates = [PEAK * (i + 1) / WARMUP for i in range(WARMUP)]
    rates += [PEAK * (1 - i / (STEPS - WARMUP)) for i in range(STEPS - WARMUP)]
    rows = train(model, numbers, rates)
    lines = [
        "Loading checkpoint from ./base-model",
        "***** Running training *****",
        f"  Num examples = {16 * STEPS}",
        "  Num Epochs = 4",
        f"  Total optimization steps = {STEPS}",
    ]
    for end in range(10, STEPS + 1, 10):
        mean = sum(r[0] for r in rows[end - 10 : end]) / 10
        entry = {
            "loss": round(mean, 4),
            "grad_norm": rows[end - 1][1],
            "learning_rate": rows[end - 1][2],
            "epoch": round(4 * end / STEPS, 2),
        }
        lines.append(str(entry))
    lines.append("{'train_runtime': 41.3, 'train_samples_per_second': 387.4, 'epoch': 4.0}")
    (folder / "output.log").write_text("\n".join(lines) + "\n")
