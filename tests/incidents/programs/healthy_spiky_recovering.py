"""A language model meets a batch of hexadecimal junk now and then: the loss spikes and returns."""

from pathlib import Path

import torch
from training import CharacterModel, Clock, seed, text, windows

STEPS, EVAL_EVERY, LOG_EVERY = 1200, 200, 5


@torch.no_grad()
def estimate(model: CharacterModel, numbers: torch.Tensor) -> float:
    return float(torch.stack([model(windows(numbers, 32)) for _ in range(4)]).mean())


def make(folder: Path) -> None:
    seed(2)
    train, val, letters = text()
    model, clock = CharacterModel(letters), Clock(0.031)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    lines = [
        "Overriding config with config/train_licence_char.py:",
        "out_dir = 'out-licence-char'",
        f"eval_interval = {EVAL_EVERY}",
        "batch_size = 16",
        "learning_rate = 2e-3",
        f"max_iters = {STEPS}",
        f"number of parameters: {sum(p.numel() for p in model.parameters()) / 1e6:.2f}M",
    ]
    for step in range(STEPS + 1):
        if step % EVAL_EVERY == 0:
            losses = estimate(model, train), estimate(model, val)
            lines.append(f"step {step}: train loss {losses[0]:.4f}, val loss {losses[1]:.4f}")
            if step:
                lines.append("saving checkpoint to out-licence-char")
        batch = windows(train, 16)
        if torch.rand(()) < 0.02:  # a document of junk in the crawl
            batch = torch.randint(letters, batch.shape)
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        took_ms = 1000 * clock.tick()
        if step % LOG_EVERY == 0:
            lines.append(f"iter {step}: loss {loss:.4f}, time {took_ms:.2f}ms, mfu 1.9{step % 7}%")
    (folder / "train.log").write_text("\n".join(lines) + "\n")
