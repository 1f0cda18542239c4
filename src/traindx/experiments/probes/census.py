"""What the census inside a rerun noted of the program: what there is that could be changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class OptimizerFacts:
    """An optimizer and the learning rates that its steps were taken with."""

    type: str = ""
    first: float = 0.0
    least: float = 0.0
    most: float = 0.0
    last: float = 0.0
    decay: float = 0.0
    momentum: float = 0.0
    steps: int = 0
    numbers: int = 0


@dataclass(frozen=True, slots=True)
class FeatureSpread:
    """How the features of inputs or targets lie."""

    mean: float = 0.0  # the largest one, without its sign
    most: float = 1.0  # deviations
    least: float = 1.0
    middle: float = 1.0
    size: int = 1


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """What was seen of a program while it ran as it is."""

    optimizers: tuple[OptimizerFacts, ...] = ()
    norms: tuple[float, ...] = ()
    clip_calls: int = 0
    clipped: int = 0
    clip_limit: float | None = None
    dropout: float = 0.0
    smoothing: float = 0.0
    autocast: bool = False
    half_weights: bool = False
    trained_in_eval: int = 0
    evaluated_in_train: int = 0
    loaders: tuple[Mapping[str, Any], ...] = ()
    has_loaded: bool = False
    layers: tuple[Mapping[str, Any], ...] = ()
    inputs: FeatureSpread | None = None
    targets: FeatureSpread | None = None
    rows: int = 0
    models: tuple[str, ...] = ()
    classes: int = 0
    loss_kind: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def main(self) -> OptimizerFacts | None:
        """The optimizer that holds most."""
        return max(self.optimizers, key=lambda o: (o.steps, o.numbers), default=None)

    @property
    def usual_norm(self) -> float | None:
        return median(self.norms) if self.norms else None


def read_census(folder: Path) -> ProgramFacts:
    """Return what the process that took most steps noted; nothing is known without it."""
    best: Mapping[str, Any] = {}
    for path in sorted(folder.glob(".census-*.json")):
        told = read_json(path)
        if told is not None and _steps(told) >= _steps(best):
            best = told
    return _facts(best)


def read_json(path: Path) -> Mapping[str, Any] | None:
    """Return an object that a rerun wrote, or nothing where it is damaged or too large."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _steps(told: Mapping[str, Any]) -> int:
    return max((int(o.get("steps", 0)) for o in told.get("optimizers", ())), default=-1)


def _facts(told: Mapping[str, Any]) -> ProgramFacts:
    if not told:
        return ProgramFacts()
    plain = {
        name: told[name]
        for name in ("clip_calls", "clipped", "clip_limit", "dropout", "smoothing", "autocast",
                     "half_weights", "trained_in_eval", "evaluated_in_train", "has_loaded", "rows",
                     "classes", "loss_kind")
        if name in told
    }  # fmt: skip
    return ProgramFacts(
        optimizers=tuple(OptimizerFacts(**o) for o in told.get("optimizers", ())),
        norms=tuple(float(n) for n in told.get("norms", ())),
        loaders=tuple(told.get("loaders", ())),
        layers=tuple(told.get("layers", ())),
        models=tuple(told.get("models", ())),
        inputs=_spread(told.get("inputs")),
        targets=_spread(told.get("targets")),
        **plain,
    )


def _spread(told: Mapping[str, Any] | None) -> FeatureSpread | None:
    if not told:
        return None
    return FeatureSpread(**{k: v for k, v in told.items() if k in FeatureSpread.__slots__})
