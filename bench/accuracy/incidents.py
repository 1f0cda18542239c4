"""The incidents of the corpus with their labels, and the artifacts a user might have of each."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx.causes import families

CORPUS = Path(__file__).parent.parent / "cache" / "corpus"
HALVES = ("develop", "first", "second", "report-known", "report")
SETS = ("log", "log + source", "recording + source", "traceback", "checkpoint")
WHOLE = "recording + source"
HEALTHY = "healthy"

# What the printed output of a run that does not crash can tell apart. Listed before any score was
# looked at: these causes have a curve or a printed line of their own; all others need the source
# or a look inside.
SHOWN_BY_A_LOG = frozenset(
    {
        "lr-too-high", "lr-too-low", "lr-zero", "lr-schedule-misuse", "overfitting",
        "class-imbalance", "class-collapse", "posterior-collapse", "policy-entropy-collapse",
        "generator-mode-collapse", "repetition-collapse", "loss-scale-collapse",
        "catastrophic-forgetting", "outlier-batch", "host-memory-growth", "halting-collapse",
        "resume-without-optimizer-state", "empty-validation",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Incident:
    """One run with a known truth; `cause` is None for a healthy one."""

    name: str
    half: str
    folder: Path
    program: str
    framework: str
    operator: str
    strength: str
    injected: str | None
    cause: str | None
    accepted: frozenset[str]
    file: str
    line: int | None
    crashed: bool
    command: tuple[str, ...] = ()

    @property
    def is_healthy(self) -> bool:
        return self.cause is None

    @property
    def is_weak_fault(self) -> bool:
        """A fault was put in, and the outcome is as good as without it."""
        return self.cause is None and self.injected is not None

    @property
    def family(self) -> str:
        return HEALTHY if self.cause is None else family_of(self.cause)

    @property
    def is_shown_by_a_log(self) -> bool:
        return self.crashed or self.cause in SHOWN_BY_A_LOG

    def paths(self, artifacts: str) -> list[Path]:
        """Return what a user with these artifacts would hand over; nothing where there are none."""
        made = self.folder / "artifacts"
        wanted = {
            "log": [made / "log.txt"],
            "log + source": [made / "log.txt", self.folder / "project"],
            "recording + source": [self.folder / "recording"],
            "traceback": [made / "traceback.txt"],
            "checkpoint": [made / "checkpoint.pt"],
        }[artifacts]
        return wanted if all(p.exists() for p in wanted) else []


def family_of(cause: str) -> str:
    """Return the family that a cause belongs to."""
    return next((f.name for f in families() if cause in {c.name for c in f.causes}), "other")


def incidents(half: str, corpus: Path = CORPUS) -> Iterator[Incident]:
    """Return every incident of one half that was generated."""
    for label in sorted((corpus / half).glob("*/label.json")):
        yield _incident(json.loads(label.read_text(encoding="utf-8")), label.parent, half)


def _incident(data: Mapping[str, Any], folder: Path, half: str) -> Incident:
    cause = data["cause"]
    accepted = frozenset(data.get("accepted") or ()) | ({cause} if cause else set())
    return Incident(
        name=str(data["incident"]),
        half=half,
        folder=folder,
        program=str(data["program"]),
        framework=str(data["framework"]),
        operator=str(data["operator"]),
        strength=str(data.get("strength") or ""),
        injected=data.get("injected"),
        cause=cause,
        accepted=accepted,
        file=str(data.get("file") or ""),
        line=data.get("line"),
        crashed=bool(data.get("crashed")),
        command=tuple(shlex.split(str(data.get("command") or ""))),
    )
