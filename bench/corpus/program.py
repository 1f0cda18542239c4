"""The programs of the corpus and their mutants."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path

from bench.corpus.operators import Form, Operator
from bench.corpus.source import Source, apply

PROGRAMS = Path(__file__).parent / "programs"
# `first` and `second` were the report halves of two judgements, read and worked on since
HALVES = ("develop", "first", "second", "report-known", "report")
# the programs of the report half once more, with the forms of the faults that the others have
PROGRAMS_OF = {"report-known": "report"}
WITH_NEW_FORMS = ("report",)
# by the name they had when their incidents were chosen
SEEDED_AS = {"first": "report", "second": "report", "report-known": "report"}


@dataclass(frozen=True)
class Program:
    """A training program: its files, how it is started, and how its log tells how well it went."""

    half: str
    name: str
    family: str
    framework: str
    command: tuple[str, ...]
    ranks: int
    metric: re.Pattern[str]
    loss: re.Pattern[str] | None
    is_higher_better: bool
    files: Mapping[str, str]

    @cached_property
    def sources(self) -> list[Source]:
        return [Source(p, t) for p, t in sorted(self.files.items()) if p.endswith(".py")]

    def digest(self, *more: str) -> str:
        """Return a name for exactly these files and this command."""
        told = hashlib.sha256(shlex.join([*self.command, *more]).encode())
        for path, text in sorted(self.files.items()):
            told.update(f"\0{path}\0{text}".encode())
        return told.hexdigest()[:16]


@dataclass(frozen=True)
class Mutant:
    """A program with one change in one file."""

    program: Program
    operator: Operator
    form: Form
    strength: float
    cause: str | None
    accepted: tuple[str, ...]
    path: str
    line: int

    @property
    def name(self) -> str:
        strong = f"-{self.strength:g}" if len(self.operator.strengths) > 1 else ""
        written = "" if self.form is self.operator.first else f"--{self.form.name}"
        return f"{self.program.name}--{self.operator.name}{strong}{written}"


def programs(half: str) -> list[Program]:
    """Return the programs of one half."""
    folder = PROGRAMS / PROGRAMS_OF.get(half, half)
    library = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    table = library.loads((folder / "programs.toml").read_text(encoding="utf-8"))
    found = []
    for name, about in sorted(table.items()):
        files = {
            str(p.relative_to(folder / name)): p.read_text(encoding="utf-8")
            for p in sorted((folder / name).rglob("*"))
            if p.suffix in (".py", ".yaml", ".toml", ".json", ".txt")
        }
        found.append(
            Program(
                half,
                name,
                about.get("family") or about["kind"],
                about.get("framework", "plain"),
                tuple(shlex.split(about.get("command", "python train.py"))),
                about.get("ranks", 1),
                re.compile(about["metric"], re.MULTILINE),
                re.compile(about["loss"], re.MULTILINE) if "loss" in about else None,
                about["better"] in ("higher", "up", "max"),
                files,
            )
        )
    return found


def mutants(
    program: Program, operator: Operator, strength: float, form: Form | None = None
) -> Iterator[Mutant]:
    """Yield every mutant of a program by one form of an operator that still compiles."""
    form = form or operator.first
    for source in program.sources:
        for change in form.rule(source, strength):
            text, line = apply(source, change.edits, change.at)
            if text == source.text or not is_python(text):
                continue
            cause = change.cause if change.cause is not None else operator.cause
            accepted = operator.accepted if change.accepted is None else change.accepted
            changed = replace(program, files={**program.files, source.path: text})
            yield Mutant(changed, operator, form, strength, cause, accepted, source.path, line)


def is_python(text: str) -> bool:
    """Tell whether a text compiles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True
