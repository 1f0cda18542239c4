"""The one question that splits what is still possible best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from traindx.specialists.playbooks import NAMES
from traindx.specialists.routing.ranking import Claim

COST_OF_AN_ANSWER = 0.1  # bits; a question with six answers is harder to reply to than one with two


def best_question(claims: Mapping[str, Claim], questions: Sequence[Mapping[str, Any]]) -> str:
    """Return the question whose answer tells most about which specialist is needed."""
    likely = {s: c.score for s, c in claims.items() if c.score > 0}
    if len(likely) < 2:
        # one weak hint settles nothing, so the others stay possible
        likely = {name: likely.get(name, 0.0) + 1.0 for name in NAMES}

    def worth(question: Mapping[str, Any]) -> float:
        told = information(likely, question["answers"])
        return round(told - COST_OF_AN_ANSWER * len(question["answers"]), 6)

    return str(max(questions, key=worth)["ask"])


def information(likely: Mapping[str, float], answers: Mapping[str, Sequence[str]]) -> float:
    """Return how many bits the answer to a question is expected to tell about the specialist."""
    total = sum(likely.values())
    masses: dict[str, float] = {}
    spread = 0.0
    for specialist, weight in likely.items():
        fitting = [answer for answer, names in answers.items() if specialist in names]
        if fitting:  # who cannot find an answer that fits learns nothing from the question
            spread += weight / total * log2(len(fitting))
        for answer in fitting:
            masses[answer] = masses.get(answer, 0.0) + weight / total / len(fitting)
    covered = sum(masses.values())
    return -sum(p * log2(p / covered) for p in masses.values() if p > 0) - spread
