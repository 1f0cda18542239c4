"""Curves and recordings for the examples of detectors: what real runs look like, seeded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from traindx.model import Floats, Run, make_run
from traindx.recording import Ending, Process, Recording


def decay(
    count: int, start: float = 2.3, end: float = 0.4, *, noise: float = 0.05, seed: int = 0
) -> Floats:
    """Return a loss that falls steeply, then slowly, with noise in proportion to its level."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0.0, 1.0, count)
    remaining = (np.exp(-5.0 * time) - np.exp(-5.0)) / (1.0 - np.exp(-5.0))
    smooth = end + (start - end) * remaining
    return np.asarray(smooth * (1.0 + noise * rng.standard_normal(count)), dtype=np.float64)


def flat(count: int, level: float, *, noise: float = 0.02, seed: int = 0) -> Floats:
    """Return a curve that only shakes about its level."""
    rng = np.random.default_rng(seed)
    return np.asarray(level * (1.0 + noise * rng.standard_normal(count)), dtype=np.float64)


def join(*parts: ArrayLike) -> Floats:
    """Return curves one after another."""
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])


def recorded(*processes: Process, ending: Ending | None = None, **series: ArrayLike) -> Run:
    """Return a run with a recording; `loss_train` names the series loss/train."""
    ranked = tuple(
        replace(p, path=f"rank{i}.jsonl", rank=i, world_size=len(processes))
        for i, p in enumerate(processes)
    )
    named = {name.replace("_", "/", 1): values for name, values in series.items()}
    return replace(make_run(named), recording=Recording(ranked, ending))
