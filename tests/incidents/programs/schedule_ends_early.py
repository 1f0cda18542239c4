"""total_steps was computed for one epoch of five: the rate is 0 from a fifth of the run on."""

from pathlib import Path

import torch
from training import CharacterModel, seed, text, windows, write_jsonl

EPOCHS, PER_EPOCH, WARMUP = 5, 200, 20


def make(folder: Path) -> None:
    seed(42)
    train, _, letters = text()
    model = CharacterModel(letters)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: max(0.0, min((s + 1) / WARMUP, (PER_EPOCH - s) / (PER_EPOCH - WARMUP))),
    )
    rows = []
    for step in range(1, EPOCHS * PER_EPOCH + 1):
        loss = model(windows(train, 16))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = schedule.get_last_lr()[0]
        optimizer.step()
        schedule.step()
        if step % 5 == 0:
            rows.append(
                {
                    "step": step,
                    "epoch": round(step / PER_EPOCH, 3),
                    "loss": round(loss.item(), 4),
                    "grad_norm": round(norm.item(), 4),
                    "lr": rate,
                }
            )
    write_jsonl(folder / "metrics.jsonl", rows)
    (folder / "config.json").write_text(
        '{"lr": 0.002, "scheduler": "linear", "warmup_steps": 20, "num_epochs": 5}\n'
    )
