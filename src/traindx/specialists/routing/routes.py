"""What a question is answered with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Heard:
    """One concept that the question speaks of, with the words that speak of it."""

    concept: str
    kind: str
    words: str
    is_denied: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "concept": self.concept,
            "kind": self.kind,
            "words": self.words,
            "denied": self.is_denied,
        }


@dataclass(frozen=True, slots=True)
class Route:
    """Specialists in order, or one question, or neither: then it is not about training models."""

    specialists: tuple[str, ...]
    why: str
    overrides: tuple[str, ...] = ()
    question: str | None = None
    first_steps: tuple[str, ...] = ()
    artifacts_wanted: tuple[str, ...] = ()
    heard: tuple[Heard, ...] = ()
    causes: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()  # worth checking first; words alone show none of them

    @property
    def decision(self) -> str:
        """Whether this routes, asks or refuses."""
        return "route" if self.specialists else "ask" if self.question else "refuse"

    def to_dict(self) -> dict[str, Any]:
        return {
            "decision": self.decision,
            "specialists": list(self.specialists),
            "why": self.why,
            "overrides": list(self.overrides),
            "question": self.question,
            "first_steps": list(self.first_steps),
            "artifacts_wanted": list(self.artifacts_wanted),
            "heard": [heard.to_dict() for heard in self.heard],
            "causes": list(self.causes),
            "candidates": list(self.candidates),
        }
