"""Generate the corpus.

    python -m bench.corpus [--half develop|first|second|report-known|report]
                           [--only PROGRAM] [--jobs N] [--again recording]

Incidents end up in bench/cache/corpus/<half>. What was run before is not run again; a change of
the recorder takes `--again recording`. `--list` says which mutants would be
run, `--dry` runs no recorder.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter

from bench.corpus.census import census
from bench.corpus.generate import Order, generate
from bench.corpus.operators import all_operators
from bench.corpus.plan import choose
from bench.corpus.program import HALVES, Mutant, programs

NICE = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus")
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--only", default="", metavar="PROGRAM")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", choices=("recording",))
    parser.add_argument("--dry", action="store_true", help="label only, record nothing")
    parser.add_argument("--list", action="store_true", help="say what would be run")
    parser.add_argument("--census", action="store_true", help="count what is there")
    given = parser.parse_args()
    os.nice(NICE)
    for half in [given.half] if given.half else HALVES:
        if given.list:
            _list(half, given.only)
        elif not given.census:
            order = Order(half, given.only, given.jobs, not given.dry, given.again == "recording")
            print(f"{half}: {generate(order)}", flush=True)
        if not given.list:
            print(census(half))
    return 0


def _list(half: str, only: str) -> None:
    chosen = choose(programs(half), all_operators(), half)
    for mutant in chosen:
        if only in ("", mutant.program.name):
            form = f"{mutant.operator.name}/{mutant.form.name}"
            cause = mutant.cause or "healthy"
            print(f"{mutant.name} {mutant.path}:{mutant.line} {cause} {form}")
    print(Counter(m.cause or "healthy" for m in chosen))
    print(Counter(_kind(m) for m in chosen if m.cause))


def _kind(mutant: Mutant) -> str:
    if mutant.form is mutant.operator.first:
        return "first form"
    return "new form" if mutant.form.is_new else "known form"


if __name__ == "__main__":
    sys.exit(main())
