"""How many verdicts survive when programs are rewritten, by transformation and by rule.

python -m bench.rewriting                  every source example of every rule
python -m bench.rewriting --corpus first   every program of a half of the corpus, mutants included
    --share 8                              one rewritten program in eight, always the same
"""

from __future__ import annotations

import argparse
import gc
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from bench.corpus.operators import all_operators
from bench.corpus.plan import choose
from bench.corpus.program import HALVES, programs
from bench.rewriting import NAMES, rewritten
from traindx.examples import make_run
from traindx.model.run import Run
from traindx.registry import Detector, detectors


@dataclass
class Survival:
    """Verdicts that stayed, of those that were tried."""

    kept: int = 0
    tried: int = 0

    def add(self, is_kept: bool) -> None:
        self.kept += is_kept
        self.tried += 1

    def __str__(self) -> str:
        return f"{self.kept}/{self.tried}" if self.tried else "-"


@dataclass
class Tally:
    """What survived, for programs in which a rule fires and for those in which it is silent."""

    fires: Survival = field(default_factory=Survival)
    silent: Survival = field(default_factory=Survival)

    @property
    def is_whole(self) -> bool:
        return all(s.kept == s.tried for s in (self.fires, self.silent))

    def add(self, fires: bool, is_kept: bool) -> None:
        (self.fires if fires else self.silent).add(is_kept)


@cache
def source_rules() -> list[Detector]:
    """Return the rules that need nothing but source."""
    return [d for d in detectors().items if d.needs == ("source",)]


def examples_of(rule: Detector) -> Iterator[tuple[Run, bool]]:
    """Yield the examples of a rule that have a program, and whether it fires in each."""
    module = sys.modules[rule.check.__module__]
    for name, fires in (("FIRES", True), ("SILENT", False)):
        for run in getattr(module, name).values():
            if run.sources:
                yield run, fires


def rewritten_run(run: Run, name: str) -> Run | None:
    """Return an example with its program rewritten and all else as it was."""
    new = rewritten({s.path: s.text for s in run.sources}, name)
    return None if new is None else replace(run, sources=make_run(sources=new).sources)


def fires(rule: Detector, run: Run) -> bool:
    return any(True for _ in rule.check(run))


@dataclass(frozen=True)
class Survivals:
    """What survived, by transformation and by rule."""

    by_form: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    by_rule: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))

    def add(self, name: str, rule: Detector, expected: bool, found: bool) -> None:
        self.by_form[name].add(expected, found is expected)
        self.by_rule[rule.name].add(expected, found is expected)


def is_tried(share: int, *place: object) -> bool:
    """Tell whether a rewritten program is among the share that is tried, always the same."""
    return zlib.crc32(" ".join(map(str, place)).encode()) % share == 0


def survival_of_examples(share: int = 1) -> Survivals:
    """Return what survives of the rules' own examples."""
    found = Survivals()
    for rule in source_rules():
        for number, (run, expected) in enumerate(examples_of(rule)):
            for name in NAMES:
                new = rewritten_run(run, name) if is_tried(share, rule.name, number, name) else None
                if new is not None:
                    found.add(name, rule, expected, fires(rule, new))
    return found


def survival_of_corpus(half: str, share: int = 1) -> Survivals:
    """Return what survives of the verdicts on a half of the corpus."""
    found = Survivals()
    originals = programs(half)
    everything = [*originals, *(m.program for m in choose(originals, all_operators(), half))]
    for number, program in enumerate(everything):
        run = make_run(sources={p: t for p, t in program.files.items() if p.endswith(".py")})
        chosen = [name for name in NAMES if is_tried(share, half, number, name)]
        versions = [(name, new) for name in chosen if (new := rewritten_run(run, name))]
        before = {r.name: fires(r, run) for r in source_rules()} if versions else {}
        for name, new in versions:
            for rule in source_rules():
                found.add(name, rule, before[rule.name], fires(rule, new))
    return found


def _table(title: str, rows: dict[str, Tally]) -> None:
    print(f"\n| {title} | fires, kept | silent, kept |\n|---|---|---|")
    for name, tally in rows.items():
        print(f"| {name} | {tally.fires} | {tally.silent} |")


def _total(rows: dict[str, Tally]) -> Tally:
    total = Tally()
    for tally in rows.values():
        for mine, theirs in ((total.fires, tally.fires), (total.silent, tally.silent)):
            mine.kept += theirs.kept
            mine.tried += theirs.tried
    return total


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rewriting")
    parser.add_argument("--corpus", choices=HALVES)
    parser.add_argument("--share", type=int, default=1)
    given = parser.parse_args()
    gc.set_threshold(50_000)  # syntax trees by the thousand, each short of life
    if given.corpus:
        found = survival_of_corpus(given.corpus, given.share)
    else:
        found = survival_of_examples(given.share)
    _table("transformation", {**found.by_form, "all": _total(found.by_form)})
    _table("rule", {n: t for n, t in found.by_rule.items() if not t.is_whole})
    return 0


if __name__ == "__main__":
    sys.exit(main())
