"""How many verdicts survive when programs are rewritten, by transformation and by rule.

python -m bench.rewriting                  every source example of every rule
python -m bench.rewriting --corpus first   every program of a half of the corpus, mutants included
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.corpus.operators import all_operators
from bench.corpus.plan import choose
from bench.corpus.program import HALVES, programs
from bench.rewriting import NAMES, Files, rewritten
from traindx.examples import make_run
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

    def add(self, fires: bool, is_kept: bool) -> None:
        (self.fires if fires else self.silent).add(is_kept)


def source_rules() -> list[Detector]:
    """Return the rules that need nothing but source."""
    return [d for d in detectors().items if d.needs == ("source",)]


def examples_of(rule: Detector) -> Iterator[tuple[Files, bool]]:
    """Yield the programs among a rule's examples, and whether it fires in each."""
    module = sys.modules[rule.check.__module__]
    for name, fires in (("FIRES", True), ("SILENT", False)):
        for run in getattr(module, name).values():
            is_shown_otherwise = not fires and (run.has_trained or run.failures)
            if run.sources and not is_shown_otherwise:
                yield {s.path: s.text for s in (*run.sources, *run.documents)}, fires


def fires(rule: Detector, files: Files) -> bool:
    return any(True for _ in rule.check(make_run(sources=files)))


def survival_of_examples() -> tuple[dict[str, Tally], dict[str, Tally]]:
    """Return what survives of the rules' own examples, by transformation and by rule."""
    by_form: dict[str, Tally] = defaultdict(Tally)
    by_rule: dict[str, Tally] = defaultdict(Tally)
    for rule in source_rules():
        for files, expected in examples_of(rule):
            for name in NAMES:
                new = rewritten(files, name)
                if new is not None:
                    is_kept = fires(rule, new) is expected
                    by_form[name].add(expected, is_kept)
                    by_rule[rule.name].add(expected, is_kept)
    return by_form, by_rule


def survival_of_corpus(half: str) -> tuple[dict[str, Tally], dict[str, Tally]]:
    """Return what survives of the verdicts on a half of the corpus."""
    by_form: dict[str, Tally] = defaultdict(Tally)
    by_rule: dict[str, Tally] = defaultdict(Tally)
    originals = programs(half)
    everything = [*originals, *(m.program for m in choose(originals, all_operators(), half))]
    for program in everything:
        files = {p: t for p, t in program.files.items() if p.endswith(".py")}
        before = {r.name: fires(r, files) for r in source_rules()}
        for name in NAMES:
            new = rewritten(files, name)
            if new is None:
                continue
            for rule in source_rules():
                is_kept = fires(rule, new) is before[rule.name]
                by_form[name].add(before[rule.name], is_kept)
                by_rule[rule.name].add(before[rule.name], is_kept)
    return by_form, by_rule


def _table(title: str, rows: dict[str, Tally]) -> None:
    print(f"\n| {title} | fires, kept | silent, kept |\n|---|---|---|")
    for name, tally in rows.items():
        print(f"| {name} | {tally.fires} | {tally.silent} |")
    kept = sum(t.fires.kept for t in rows.values()), sum(t.fires.tried for t in rows.values())
    calm = sum(t.silent.kept for t in rows.values()), sum(t.silent.tried for t in rows.values())
    print(f"| all | {kept[0]}/{kept[1]} | {calm[0]}/{calm[1]} |")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rewriting")
    parser.add_argument("--corpus", choices=HALVES)
    given = parser.parse_args()
    found = survival_of_corpus(given.corpus) if given.corpus else survival_of_examples()
    _table("transformation", found[0])
    _table("rule", found[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
