"""Writes the raw dump the way the lab delivers it: one .npy per photo plus a labels.csv."""
import csv
from pathlib import Path

import numpy as np


def write_dump(root, n=360, seed=0):
    root = Path(root)
    (root / "photos").mkdir(parents=True, exist_ok=True)
    g = np.random.default_rng(seed)
    with open(root / "labels.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["photo", "disease"])
        for i in range(n):
            c = int(g.integers(0, 3))
            img = g.normal(0.5, 0.15, (3, 16, 16)).astype(np.float32)
            if c == 1:
                img[0, 4:10, 4:10] += 0.4
            elif c == 2:
                img[1, ::3] -= 0.3
            np.save(root / "photos" / f"leaf_{i}.npy", img)
            w.writerow([f"leaf_{i}", c])
    return root
