"""Write a small recording session to disk: one .npy per trial plus one labels.txt (line k = trial k)."""
from pathlib import Path

import numpy as np

GESTURES = ["wave", "push", "circle"]


def _trial(kind, rng, steps=40):
    t = np.linspace(0, 2 * np.pi, steps)
    ph, sp = rng.uniform(0, np.pi), rng.uniform(0.8, 1.2)
    if kind == "wave":
        xyz = [np.sin(3 * sp * t + ph), 0.1 * t, np.zeros(steps)]
    elif kind == "push":
        xyz = [np.zeros(steps), np.exp(-((t - 3) ** 2)) * 2, 0.3 * np.sin(t)]
    else:
        xyz = [np.cos(sp * t + ph), np.sin(sp * t + ph), np.zeros(steps)]
    return (np.stack(xyz) + rng.normal(0, 0.2, (3, steps))).astype(np.float32)


def record_session(root: Path, trials: int, seed: int):
    rng = np.random.default_rng(seed)
    root.mkdir(parents=True, exist_ok=True)
    kinds = [GESTURES[k] for k in rng.integers(0, len(GESTURES), trials)]
    for k, kind in enumerate(kinds):
        np.save(root / f"trial_{k}.npy", _trial(kind, rng))
    (root / "labels.txt").write_text("\n".join(kinds))
