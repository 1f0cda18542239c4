"""Which mutants become incidents: a choice by seed that prefers breadth."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from bench.corpus.operators import Form, Operator
from bench.corpus.program import SEEDED_AS, WITH_NEW_FORMS, Mutant, Program, mutants

Forms = Callable[[Operator], Iterable[Form]]
PER_CAUSE = 2  # tries; a cause whose faults come in several strengths gets more
PER_CAUSE_WITH_STRENGTHS = 3
PER_CAUSE_FURTHER_FORMS = 1  # beyond those of first forms, which stay what they were
PER_PROGRAM_ODDITIES = 7
LAUNCHED_LAST = 12


def first_forms(operator: Operator) -> Iterable[Form]:
    return (operator.first,)


def further_forms(operator: Operator) -> Iterable[Form]:
    """Return the forms that the halves of development have beside the first."""
    return operator.known[1:]


def new_forms(operator: Operator) -> Iterable[Form]:
    """Return the forms that no half of development has; an oddity has one form for all halves."""
    return operator.new if operator.cause is not None else operator.forms


def candidates(
    programs: Sequence[Program], operators: Sequence[Operator], forms: Forms = first_forms
) -> list[Mutant]:
    """Return one mutant for every program, operator, form and strength that fit."""
    found = []
    for program in programs:
        for operator in operators:
            for form in forms(operator):
                for strength in operator.strengths:
                    choice = list(mutants(program, operator, strength, form))
                    if choice:
                        written = "" if form is operator.first else f" {form.name}"
                        told = f"{program.name} {operator.name}{written}"  # for all strengths
                        found.append(random.Random(told).choice(choice))
    return found


def choose(programs: Sequence[Program], operators: Sequence[Operator], half: str) -> list[Mutant]:
    """Return the mutants to be run: some for every cause, and oddities for every program."""
    if half in WITH_NEW_FORMS:
        every = _drawn(candidates(programs, operators, new_forms), half)
        further: list[Mutant] = []
    else:
        every = _drawn(candidates(programs, operators), half)
        further = _drawn(candidates(programs, operators, further_forms), half)
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
        chosen += _spread(faults[cause], used, _tries(faults[cause]))
    for cause in sorted({m.cause for m in further if m.cause is not None}):
        ready = [m for m in further if m.cause == cause]
        chosen += _spread(ready, used, PER_CAUSE_FURTHER_FORMS)
    told: Counter[str] = Counter()
    for name in sorted(innocent):
        ordered = innocent[name]
        for _ in range(min(PER_PROGRAM_ODDITIES, len(ordered))):
            best = min(ordered, key=lambda m: told[m.operator.name])
            ordered.remove(best)
            told[best.operator.name] += 1
            chosen.append(best)
    return sorted(chosen, key=lambda m: (m.program.framework, m.program.name, m.name))


def _drawn(found: list[Mutant], half: str) -> list[Mutant]:
    """Put mutants into the order in which they are drawn."""
    seed = f"corpus {SEEDED_AS.get(half, half)}"
    # Each draws its own number, so that a new operator does not change the order of the others.
    return sorted(found, key=lambda m: random.Random(f"{seed} {m.name}").random())


def _tries(ready: list[Mutant]) -> int:
    has_strengths = any(len(m.operator.strengths) > 1 for m in ready)
    return PER_CAUSE_WITH_STRENGTHS if has_strengths else PER_CAUSE


def _spread(ready: list[Mutant], used: Counter[str], tries: int) -> list[Mutant]:
    """Take some mutants of one cause, from different programs, operators and strengths."""
    left, taken = list(ready), []
    here: Counter[str] = Counter()
    for _ in range(tries):
        if not left:
            break
        best = min(
            left,
            key=lambda m: (
                here[m.program.name],
                here[f"{m.operator.name} {m.strength}"],
                here[m.operator.name],
                here[f"{m.operator.name}/{m.form.name}"],
                used[m.program.name],
            ),
        )
        left.remove(best)
        name = best.operator.name
        for key in (best.program.name, name, f"{name} {best.strength}", f"{name}/{best.form.name}"):
            here[key] += 1
        used[best.program.name] += 1
        taken.append(best)
    return taken
