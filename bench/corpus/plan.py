"""Which mutants become incidents: a choice by seed that prefers breadth."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

from bench.corpus.operators import Operator
from bench.corpus.program import SEEDED_AS, Mutant, Program, mutants

PER_CAUSE = 2  # tries; a cause whose faults come in several strengths gets more
PER_CAUSE_WITH_STRENGTHS = 3
PER_PROGRAM_ODDITIES = 7
LAUNCHED_LAST = 12


def candidates(programs: Sequence[Program], operators: Sequence[Operator]) -> list[Mutant]:
    """Return one mutant for every program, operator and strength that fit."""
    found = []
    for program in programs:
        for operator in operators:
            for strength in operator.strengths:
                choice = list(mutants(program, operator, strength))
                if choice:
                    told = f"{program.name} {operator.name}"  # one site for all strengths
                    found.append(random.Random(told).choice(choice))
    return found


def choose(programs: Sequence[Program], operators: Sequence[Operator], half: str) -> list[Mutant]:
    """Return the mutants to be run: some for every cause, and oddities for every program."""
    seed = f"corpus {SEEDED_AS.get(half, half)}"
    every = candidates(programs, operators)
    # Each draws its own number, so that a new operator does not change the order of the others.
    every.sort(key=lambda m: random.Random(f"{seed} {m.name}").random())
    faults: dict[str, list[Mutant]] = defaultdict(list)
    innocent: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in every:
        if mutant.cause is None:
            innocent[mutant.program.name].append(mutant)
        else:
            faults[mutant.cause].append(mutant)
    # What needs a launcher costs most, and is wanted for what only it can show.
    used = Counter({p.name: LAUNCHED_LAST for p in programs if p.ranks > 1})
    chosen: list[Mutant] = []
    # The rarest causes choose first, so that programs of which there is one are not used up.
    for cause in sorted(faults, key=lambda c: (len(faults[c]), c)):
        chosen += _spread(faults[cause], used)
    told: Counter[str] = Counter()
    for name in sorted(innocent):
        ordered = innocent[name]
        for _ in range(min(PER_PROGRAM_ODDITIES, len(ordered))):
            best = min(ordered, key=lambda m: told[m.operator.name])
            ordered.remove(best)
            told[best.operator.name] += 1
            chosen.append(best)
    return sorted(chosen, key=lambda m: (m.program.framework, m.program.name, m.name))


def _spread(ready: list[Mutant], used: Counter[str]) -> list[Mutant]:
    """Take some mutants of one cause, from different programs, operators and strengths."""
    has_strengths = any(len(m.operator.strengths) > 1 for m in ready)
    left, taken = list(ready), []
    here: Counter[str] = Counter()
    for _ in range(PER_CAUSE_WITH_STRENGTHS if has_strengths else PER_CAUSE):
        if not left:
            break
        best = min(
            left,
            key=lambda m: (
                here[m.program.name],
                here[f"{m.operator.name} {m.strength}"],
                here[m.operator.name],
                used[m.program.name],
            ),
        )
        left.remove(best)
        for key in (best.program.name, best.operator.name, f"{best.operator.name} {best.strength}"):
            here[key] += 1
        used[best.program.name] += 1
        taken.append(best)
    return taken
