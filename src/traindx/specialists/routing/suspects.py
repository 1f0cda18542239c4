"""Which causes a question makes worth checking first; words alone show none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from traindx.specialists.playbooks import read_yaml
from traindx.specialists.routing.concepts import lexicon
from traindx.specialists.routing.phrases import Phrase, parse_phrase
from traindx.specialists.routing.question import Hearing

MOST = 5  # causes in one answer; more is no order to check in
SAID = 2.0  # a phrase of its own tells more than the field that it belongs to


@dataclass(frozen=True, slots=True)
class Sign:
    """What has to be heard or said, and the causes that come to mind, the likeliest first."""

    heard: frozenset[str]
    says: tuple[Phrase, ...]
    causes: tuple[str, ...]

    def strength(self, hearing: Hearing, heard: frozenset[str]) -> float:
        """Say how much a question speaks for it; 0 where something of it is missing."""
        if not self.heard <= heard:
            return 0.0
        is_said = not self.says or any(
            phrase.places(hearing.words, at) is not None
            for phrase in self.says
            for at, word in enumerate(hearing.words)
            if word.word in phrase.starts
        )
        return len(self.heard) + SAID * bool(self.says) if is_said else 0.0


def suspects(hearing: Hearing, known: Mapping[str, float]) -> tuple[str, ...]:
    """Return the causes to check first, in order; those that detectors found come before all."""
    heard = frozenset(m.concept.name for m in hearing.affirmed)
    scores: dict[str, float] = {}
    for sign in signs():
        strength = sign.strength(hearing, heard)
        for rank, cause in enumerate(sign.causes if strength else ()):
            scores[cause] = scores.get(cause, 0.0) + strength / (rank + 1)
    found = sorted(known, key=lambda name: -known[name])
    ranked = sorted(scores, key=lambda name: -scores[name])
    return tuple(dict.fromkeys([*found, *ranked]))[:MOST]


@cache
def signs() -> tuple[Sign, ...]:
    """Return every sign that the table tells of."""
    told = read_yaml(files(__package__).joinpath("suspects.yaml").read_text(encoding="utf-8"))
    return tuple(_sign(entry) for entry in told["signs"])


def _sign(entry: Mapping[str, Any]) -> Sign:
    written: Sequence[str] = entry.get("says", ())
    parsed = [parse_phrase(text, lexicon().grammar) for text in written]
    return Sign(
        frozenset(entry.get("heard", ())),
        tuple(phrase for phrase in parsed if phrase is not None),
        tuple(entry["causes"]),
    )
