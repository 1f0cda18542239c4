"""Pre-training with clipping: single huge gradient norms, no trace of them in the loss."""

from pathlib import Path

import torch
from training import CharacterModel, seed, text, windows, write_jsonl

STEPS, PEAK = 1000, 3e-3


def make(folder: Path) -> None:
    seed(17)
    train, _, letters = text()
    model = CharacterModel(letters)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK)
    rows = []
    for step in range(1, STEPS + 1):
        rate = PEAK * min(step / 80, 1 - 0.9 * (step - 80) / (STEPS - 80))
        optimizer.param_groups[0]["lr"] = rate
        loss = model(windows(train, 16))
        if torch.rand(()) < 0.008:  # one long document weighs a hundred times too much
            loss_to_follow = loss + 100 * model(torch.randint(letters, (1, 25)))
        else:
            loss_to_follow = loss
        optimizer.zero_grad()
        loss_to_follow.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 4 == 0 or norm > 20:
            rows.append(
                {
                    "step": step,
                    "loss": round(loss.item(), 4),
                    "grad_norm": round(norm.item(), 3),
                    "lr": rate,
                }
            )
    write_jsonl(folder / "train_log.jsonl", rows)
    (folder / "config.json").write_text(
        '{"lr": 0.003, "max_grad_norm": 1.0, "warmup_steps": 80, "batch_size": 16}\n'
    )
