"""A job hits its time limit and is resumed with everything restored; the two logs overlap."""

import io
from pathlib import Path

import torch
from torch.nn import functional
from training import Clock, digits, grad_norm, mlp, seed

SAVE_EVERY, KILLED_AT, STEPS = 200, 470, 1000


def run(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: range, start: str
) -> tuple[list[str], dict]:
    data, clock, lines, saved = digits(), Clock(0.4, start), [], {}
    for step in steps:
        batch = torch.randint(len(data.x), (32,))
        noisy = data.x[batch] + 0.2 * torch.randn(32, 64)
        loss = functional.cross_entropy(model(noisy), data.y[batch])
        optimizer.zero_grad()
        loss.backward()
        norm = grad_norm(model)
        optimizer.step()
        clock.tick()
        if step % 10 == 0:
            lines.append(
                f"{clock.stamp('%H:%M:%S')} | INFO | step={step} loss={loss:.4f}"
                f" gnorm={norm:.3f} lr=1.00e-03"
            )
        if step % SAVE_EVERY == 0:
            saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            stream = io.BytesIO()
            torch.save(saved, stream)
            stream.seek(0)
            saved = torch.load(stream)
            lines.append(f"{clock.stamp('%H:%M:%S')} | INFO | saved ckpt/step_{step:06d}.pt")
    return lines, saved


def make(folder: Path) -> None:
    seed(13)
    model = mlp(64, 48, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    lines, saved = run(model, optimizer, range(1, KILLED_AT + 1), "2026-03-02 09:14:07")
    lines.append("slurmstepd: error: *** JOB 88121 ON node07 CANCELLED DUE TO TIME LIMIT ***")
    (folder / "slurm-88121.out").write_text("\n".join(lines) + "\n")
    model = mlp(64, 48, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    lines, _ = run(model, optimizer, range(401, STEPS + 1), "2026-03-02 09:58:13")
    start = "09:58:12 | INFO | resumed from ckpt/step_000400.pt (model, optimizer, step)"
    (folder / "slurm-88304.out").write_text("\n".join([start, *lines]) + "\n")
