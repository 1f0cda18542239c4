import csv
import io
from dataclasses import dataclass

import numpy as np


@dataclass
class Scan:
    patient: str
    volume: np.ndarray
    lesion: int


def read_cohort(seed=0, patients=60, scans_each=6, size=8):
    """Simulated archive: manifest as CSV text plus one small volume per row."""
    rng = np.random.default_rng(seed)
    lines = ["patient,lesion"]
    for p in range(patients):
        for _ in range(scans_each):
            lines.append(f"{p},{int(rng.random() < 0.5)}")
    scans = []
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        lesion = int(row["lesion"])
        vol = rng.standard_normal((1, size, size, size)).astype(np.float32)
        if lesion:
            i, j, k = rng.integers(1, size - 3, 3)
            vol[0, i:i + 3, j:j + 3, k:k + 3] += 1.5
        scans.append(Scan(row["patient"], vol, lesion))
    return scans


def split_by_patient(scans, n_patients, fraction, seed):
    """No patient may appear on both sides."""
    held_out = set(np.random.default_rng(seed).permutation(n_patients)[: int(fraction * n_patients)].tolist())
    train = [s for s in scans if s.patient not in held_out]
    val = [s for s in scans if s.patient in held_out]
    return train, val
