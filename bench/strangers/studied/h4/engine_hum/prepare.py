"""Writes one .npy per recording and labels.csv (row i belongs to recording i)."""
import csv
from pathlib import Path

import numpy as np


def prepare(root, count, seed):
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    t = np.arange(256) / 256
    with open(root / "labels.csv", "w", newline="") as fh:
        writer = csv.writer(fh)
        writer.writerow(["recording", "state"])
        for i in range(count):
            state = int(rng.integers(0, 3))
            base = (9, 14, 21)[state] + rng.normal(0, 0.6)
            wave = np.sin(2 * np.pi * (base * t + rng.random())) + 0.4 * rng.normal(size=t.size)
            np.save(root / f"rec_{i}.npy", wave.astype(np.float32))
            writer.writerow([i, state])
