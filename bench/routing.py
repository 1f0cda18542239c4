"""How often the router sends a question to the right specialist, asks when it should, or declines.

The questions are the project's own, written before the vocabulary was tuned. The develop half was
tuned on, the report half was not; both were written by the same hand, so other people's wording
will fare worse than either.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx import api
from traindx.specialists.routing import Route

QUESTIONS = Path(__file__).parent / "questions"
HALVES = ("develop", "report")
SHOWN_CONFUSIONS = 8


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question with what a good answer is: any of some decisions, and any of some chains."""

    question: str
    kind: str
    decisions: tuple[str, ...]
    chains: tuple[tuple[str, ...], ...]

    @property
    def firsts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(chain[0] for chain in self.chains))


@dataclass(frozen=True, slots=True)
class Outcome:
    """A labelled question and the answer it got."""

    labelled: Labelled
    route: Route

    @property
    def is_decision_right(self) -> bool:
        return self.route.decision in self.labelled.decisions

    @property
    def is_first_right(self) -> bool:
        return self.is_decision_right and (
            not self.route.specialists or self.route.specialists[0] in self.labelled.firsts
        )

    @property
    def is_chain_right(self) -> bool:
        return self.is_decision_right and (
            not self.route.specialists or self.route.specialists in self.labelled.chains
        )

    @property
    def got(self) -> str:
        return self.route.specialists[0] if self.route.specialists else self.route.decision

    @property
    def wanted(self) -> str:
        firsts = self.labelled.firsts
        return firsts[0] if firsts else self.labelled.decisions[0]


def read_half(name: str) -> list[Labelled]:
    """Return the labelled questions of one half."""
    lines = (QUESTIONS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Labelled(d["question"], d["kind"], tuple(d["decisions"]), tuple(map(tuple, d["chains"])))
        for d in map(json.loads, lines)
    ]


def answer_half(name: str) -> list[Outcome]:
    """Route every question of one half."""
    return [Outcome(labelled, api.route(labelled.question)) for labelled in read_half(name)]


def count_right(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return how many answers are right, by how much of the answer is looked at."""
    return {
        "decision": sum(o.is_decision_right for o in outcomes),
        "first": sum(o.is_first_right for o in outcomes),
        "chain": sum(o.is_chain_right for o in outcomes),
    }


def main() -> int:
    """Print the accuracy of both halves, by kind of question, and what is mistaken for what."""
    print("| half | questions | decision | first specialist | whole chain | ms each |")
    print("|---|---|---|---|---|---|")
    answered: dict[str, list[Outcome]] = {}
    for name in HALVES:
        started = time.perf_counter()
        outcomes = answered[name] = answer_half(name)
        each_ms = 1000 * (time.perf_counter() - started) / len(outcomes)
        right = count_right(outcomes)
        shares = " | ".join(f"{right[part] / len(outcomes):.1%}" for part in right)
        print(f"| {name} | {len(outcomes)} | {shares} | {each_ms:.1f} |")
    for name, outcomes in answered.items():
        print(f"\n{name}, first specialist or decision by kind of question:", _by_kind(outcomes))
        confused = Counter((o.wanted, o.got) for o in outcomes if not o.is_first_right)
        for (wanted, got), count in confused.most_common(SHOWN_CONFUSIONS):
            print(f"- {wanted} taken for {got}: {count}")
    return 0


def _by_kind(outcomes: Sequence[Outcome]) -> str:
    every = Counter(o.labelled.kind for o in outcomes)
    right = Counter(o.labelled.kind for o in outcomes if o.is_first_right)
    return ", ".join(f"{kind} {right[kind]}/{count}" for kind, count in sorted(every.items()))


if __name__ == "__main__":
    sys.exit(main())
