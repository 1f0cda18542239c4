"""The specification's first example: fine until epoch 7, then the loss climbs. A synthetic curve.

Epochs of 4096 steps; the curriculum changes at the start of epoch 7 (step 24576) while Muon runs at
1e-2; at step 24590 the gradient norm is forty times its usual value, and the loss rises by 15 % in
the course of epoch 7 and goes on rising. The curve is modelled on divergences of small real runs
(`lr_jump.py`): power law, noise, a jump, then a slow climb with heavy-tailed gradient norms.
"""

from pathlib import Path

import numpy as np
from training import write_csv

PER_EPOCH, EPOCHS, SPIKE = 4096, 9, 24590


def curve() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return steps (every tenth), losses and gradient norms."""
    random = np.random.RandomState(70)
    steps = np.arange(10, PER_EPOCH * EPOCHS + 1, 10)
    falling = 1.55 + 9.0 * (steps + 60.0) ** -0.31
    level = float(1.55 + 9.0 * (SPIKE + 60.0) ** -0.31)
    since = np.maximum(steps - SPIKE, 0) / PER_EPOCH
    climbing = level * (1 + 0.04 * (steps >= SPIKE) + 0.12 * np.sqrt(since) + 0.02 * since)
    losses = np.where(steps < SPIKE, falling, climbing)
    losses = losses + random.normal(0, 0.018, len(steps)) * (1 + 1.2 * (steps >= SPIKE))
    norms = (0.9 + 1.6 * (steps / 500.0 + 1) ** -1.0) * random.lognormal(0, 0.12, len(steps))
    after = steps > SPIKE
    norms[after] *= 2.6 * random.lognormal(0, 0.45, int(after.sum()))
    norms[steps == SPIKE] = 44.02
    return steps, losses, norms


def write_losses(path: Path) -> None:
    steps, losses, _ = curve()
    rows = [
        {"epoch": int((s - 1) // PER_EPOCH) + 1, "step": int(s), "train_loss": f"{v:.4f}"}
        for s, v in zip(steps[::16], losses[::16], strict=True)
    ]
    write_csv(path, rows)


def make(folder: Path) -> None:
    lines, epoch = [], 0
    for step, loss, norm in zip(*curve(), strict=True):
        now = int((step - 1) // PER_EPOCH) + 1
        if now > epoch:
            epoch = now
            lines.append(f"=== epoch {epoch}/{EPOCHS} ===")
            if epoch == 7:
                lines.append("curriculum: stage 1 -> 2 (max_seq_len 512 -> 1024, +code, +math)")
        near = abs(step - SPIKE) <= 600
        if near or step % 200 == 0:  # trimmed: the original has every tenth step
            took_ms = 211 + int(step) % 17
            lines.append(
                f"epoch {epoch} | iter {step}: loss {loss:.4f}, grad_norm {norm:.2f}, "
                f"muon_lr 1.00e-02, adam_lr 3.00e-04, time {took_ms}.{int(step) % 90 + 10}ms"
            )
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    write_losses(folder / "losses.csv")
    (folder / "config.yaml").write_text(
        "model:\n  d_model: 512\n  n_layer: 8\n  n_head: 8\n"
        "optimizer:\n  name: muon\n  muon_lr: 1e-2\n  adam_lr: 3e-4\n  momentum: 0.95\n"
        "  weight_decay: 0.01\n  grad_clip: null\n"
        "curriculum:\n  enabled: true\n  stage_2_epoch: 7\n"
        "train:\n  epochs: 9\n  steps_per_epoch: 4096\n  batch_size: 32\n"
    )
