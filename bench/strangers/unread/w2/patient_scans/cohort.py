"""Builds a fake cohort on disk the way the clinic delivers it: one array per patient, one outcome table."""
import csv
from pathlib import Path

import numpy as np


def write_cohort(folder: Path, n: int = 400, seed: int = 3) -> None:
    rng = np.random.default_rng(seed)
    with open(folder / "outcome.csv", "w", newline="") as fh:
        table = csv.writer(fh)
        table.writerow(["patient", "stage"])
        for k in range(1, n + 1):
            stage = int(rng.integers(3))
            scan = rng.normal(0, 1, (12, 12))
            scan[3:9, 3:9] += 0.9 * stage
            np.save(folder / f"P{k}.npy", scan.astype(np.float32))
            table.writerow([f"P{k}", stage])


def read_cohort(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    scans = np.stack([np.load(path) for path in sorted(folder.glob("P*.npy"))])
    with open(folder / "outcome.csv") as fh:
        rows = sorted(csv.DictReader(fh), key=lambda row: int(row["patient"][1:]))
    stages = np.array([int(row["stage"]) for row in rows], dtype=np.int64)
    if len(scans) != len(stages):
        raise ValueError(f"{len(scans)} scans but {len(stages)} outcomes")
    return scans, stages
