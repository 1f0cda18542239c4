"""Fit the weights that turn findings into confidence, on the develop half alone.

python -m bench.accuracy.fitting [--sets "log,recording + source"]

Prints the weights that make the stated confidences likeliest, beside those in force. They are
taken over into `traindx.diagnosis.weights` by hand, so that a change of belief is a change one
can review.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import log

from bench.accuracy import calibration
from bench.accuracy.incidents import Incident, incidents
from bench.accuracy.judging import KEPT
from traindx.diagnosis.weights import WEIGHTS, Weights, confidences
from traindx.model.findings import Finding, Strength

HALF = "develop"
ROUNDS = 4000
CLOSE = 1e-3
# what a weight may be: an order (weak < moderate < strong < direct) and the bands of the design
RANGES = {
    "prior": (-4.0, -0.5),
    "weak": (0.1, 2.0),
    "moderate": (0.8, 3.5),
    "strong": (2.0, 5.5),
    "direct": (4.0, 8.0),
    "something_else": (0.2, 3.0),
    "highest": (0.93, 0.995),
    "highest_fitting": (0.75, 0.90),
    "highest_without_symptom": (0.3, 0.65),
}


@dataclass(frozen=True, slots=True)
class Case:
    """What the detectors said about one incident, and what is true of it."""

    incident: Incident
    artifacts: str
    findings: tuple[Finding, ...]
    folded: frozenset[str]


def cases(sets: Sequence[str]) -> Iterator[Case]:
    """Return what was kept of the last judgement of the develop half."""
    truth = {i.name: i for i in incidents(HALF)}
    with (KEPT / f"{HALF}-findings.jsonl").open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row["artifacts"] in sets and row["incident"] in truth:
                findings = tuple(_finding(f) for f in row["findings"])
                yield Case(
                    truth[row["incident"]], row["artifacts"], findings, frozenset(row["folded"])
                )


def _finding(data: dict[str, object]) -> Finding:
    def strengths(key: str) -> dict[str, Strength]:
        told = data[key]
        assert isinstance(told, dict)
        return {c: Strength(s) for c, s in told.items()}

    shows = data["shows"]
    return Finding(
        claim="",
        strength=Strength.MODERATE,
        evidence=(),
        suggests=strengths("suggests"),
        against=strengths("against"),
        shows=None if shows is None else str(shows),
        is_symptom=bool(data["is_symptom"]),
        detector=str(data["detector"]),
    )


def beliefs(found: Sequence[Case], weights: Weights) -> list[calibration.Belief]:
    """Return every belief above a mention, and whether it is right."""
    made = []
    for case in found:
        right = case.incident.accepted | {case.incident.injected}
        for cause, confidence in confidences(case.findings, weights).items():
            if confidence >= calibration.CONSIDERED and cause not in case.folded:
                made.append(calibration.Belief(confidence, cause in right))
    return made


def surprise(found: Sequence[Case], weights: Weights) -> float:
    """Return the mean negative log-likelihood over the beliefs of the weights in force.

    The set of beliefs is fixed, so that weights cannot win by not believing anything.
    """
    total, count = 0.0, 0
    for case in found:
        right = case.incident.accepted | {case.incident.injected}
        for cause, confidence in confidences(case.findings, weights).items():
            if cause in case.folded:
                continue
            p = min(max(confidence, CLOSE), 1 - CLOSE)
            total -= log(p if cause in right else 1 - p)
            count += 1
    return total / max(count, 1)


def fit(found: Sequence[Case], start: Weights = WEIGHTS, rounds: int = ROUNDS) -> Weights:
    """Return the weights of least surprise near the start: a random search, one weight a time."""
    dice = random.Random(0)
    best, least = start, surprise(found, start)
    for turn in range(rounds):
        width = 0.25 * (1 - turn / rounds) + 0.02
        name = dice.choice(list(RANGES))
        low, high = RANGES[name]
        value = getattr(best, name) + dice.gauss(0, width) * (high - low)
        tried = replace(best, **{name: min(max(value, low), high)})
        if not tried.weak < tried.moderate < tried.strong < tried.direct:
            continue
        now = surprise(found, tried)
        if now < least:
            best, least = tried, now
    return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, and print both sets of weights with what they are worth."""
    parser = argparse.ArgumentParser(prog="bench.accuracy.fitting", description=__doc__)
    parser.add_argument("--sets", default="log,log + source,recording + source")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    found = list(cases(options.sets.split(",")))
    fitted = fit(found, rounds=options.rounds)
    print(
        f"{len(found)} cases of the develop half\n\n| weight | in force | fitted |\n|---|---|---|"
    )
    for field in fields(Weights):
        before, after = getattr(WEIGHTS, field.name), getattr(fitted, field.name)
        print(f"| {field.name} | {before:.3g} | {after:.3g} |")
    for name, weights in (("in force", WEIGHTS), ("fitted", fitted)):
        error = calibration.expected_error(beliefs(found, weights))
        print(f"\n{name}: surprise {surprise(found, weights):.4f}, calibration error {error:.3f}")
    print(f"\n{json.dumps(asdict(fitted))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
