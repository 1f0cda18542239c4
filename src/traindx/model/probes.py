"""What short reruns with one change each came to, and what costs next to nothing reaches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

PROBE = "probe"  # stands for the detector in findings that probes made


class Effect(str, Enum):
    """What a change does to a run."""

    HELPS = "helps"
    HURTS = "hurts"
    NONE = "no difference"
    OPEN = "undecided"


@dataclass(frozen=True, slots=True)
class Probe:
    """One change: a metric without and with it, and how far noise alone would move it.

    `before` and `after` are means over the same seeds, after as many examples.
    """

    change: str
    cause: str
    metric: str
    before: float
    after: float
    noise: float
    effect: Effect
    seeds: int
    steps: int
    says: str = ""  # why it is undecided, or what else there is to know
    advice: str = ""  # the change as one would make it in the program
    patch: str | None = None

    @property
    def helps(self) -> bool:
        return self.effect is Effect.HELPS


@dataclass(frozen=True, slots=True)
class Probing:
    """All probes of a run, best first, the floors in units of the metric, and what was left out."""

    metric: str = ""
    probes: tuple[Probe, ...] = ()
    floors: Mapping[str, float] = field(default_factory=dict)
    left_out: tuple[tuple[str, str], ...] = ()  # a change, and why it was not tried
    remarks: tuple[str, ...] = ()
    level: float = math.nan  # of the metric, as the run is
    higher_is_better: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON shape, which is a contract."""
        return {
            "probes": [_probe_dict(p) for p in self.probes],
            "floors": {name: _number(value) for name, value in self.floors.items()},
            "probing": {
                "metric": self.metric,
                "higher_is_better": self.higher_is_better,
                "level": _number(self.level),
                "left_out": [{"change": c, "why": w} for c, w in self.left_out],
                "remarks": list(self.remarks),
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Probing | None:
        """Rebuild what `to_dict` returned; nothing where there were no probes."""
        about = data.get("probing")
        if about is None:
            return None
        return cls(
            about["metric"],
            tuple(_probe_from(p) for p in data.get("probes", ())),
            {name: _float(value) for name, value in data.get("floors", {}).items()},
            tuple((x["change"], x["why"]) for x in about["left_out"]),
            tuple(about["remarks"]),
            _float(about["level"]),
            bool(about["higher_is_better"]),
        )


def _probe_dict(probe: Probe) -> dict[str, Any]:
    return {
        "change": probe.change,
        "cause": probe.cause,
        "metric": probe.metric,
        "before": _number(probe.before),
        "after": _number(probe.after),
        "noise": _number(probe.noise),
        "helps": probe.helps,
        "effect": probe.effect.value,
        "seeds": probe.seeds,
        "steps": probe.steps,
        "says": probe.says,
        "advice": probe.advice,
        "patch": probe.patch,
    }


def _probe_from(data: Mapping[str, Any]) -> Probe:
    return Probe(
        data["change"], data["cause"], data["metric"], _float(data["before"]),
        _float(data["after"]), _float(data["noise"]), Effect(data["effect"]), data["seeds"],
        data["steps"], data["says"], data["advice"], data["patch"],
    )  # fmt: skip


def _number(value: float) -> float | str | None:
    """JSON has no NaN and no infinity: what is not known is null."""
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else str(float(value))


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)
