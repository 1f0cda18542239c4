"""Mutation operators: small edits of a training script, each with the cause that it injects.

One module per family of causes. An operator is a fault. Its first form is a function over a parsed
file and a strength that yields the changes it can make there, or none where it does not apply; the
other forms, in `bench.corpus.forms`, are other ways in which people write that same fault.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from bench.corpus.source import Edit, Source


class Judged(Enum):
    """How it is decided whether an injected fault matters."""

    BY_OUTCOME = "by outcome"  # the program's own final metric, against the healthy spread
    BY_LOG = "by log"  # wrong reporting or handling of data: it matters if the log is another
    ALWAYS = "always"  # crashes, cost, hygiene: it is wrong whatever the final metric


class Ends(Enum):
    """How a program ends with the fault in it."""

    RUNS = "runs"
    CRASHES = "crashes"
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class Change:
    """The edits of one mutant, and what stands on the line of the fault afterwards."""

    edits: tuple[Edit, ...]
    at: Edit | ast.AST
    cause: str | None = None  # where it is another than the operator's
    accepted: tuple[str, ...] | None = None


Rule = Callable[[Source, float], Iterator[Change]]


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a fault; a new one is reserved for the half that is reported."""

    name: str
    rule: Rule
    is_new: bool


@dataclass(frozen=True, slots=True)
class Operator:
    """A fault with the forms it takes: `cause` is none for an innocent oddity."""

    name: str
    family: str
    cause: str | None
    accepted: tuple[str, ...]
    strengths: tuple[float, ...]
    judged: Judged
    ends: Ends
    forms: tuple[Form, ...]

    @property
    def first(self) -> Form:
        """Return the form that all halves shared before there were others."""
        return self.forms[0]

    @property
    def known(self) -> tuple[Form, ...]:
        """Return the forms of the halves that rules are made on."""
        return tuple(f for f in self.forms if not f.is_new)

    @property
    def new(self) -> tuple[Form, ...]:
        """Return the forms that only the reported half has."""
        return tuple(f for f in self.forms if f.is_new)


REGISTRY: dict[str, Operator] = {}
ALL_STRENGTHS = (1.0,)


def operator(
    cause: str | None,
    *,
    accepted: tuple[str, ...] = (),
    strengths: tuple[float, ...] = ALL_STRENGTHS,
    judged: Judged = Judged.BY_OUTCOME,
    ends: Ends = Ends.RUNS,
) -> Callable[[Rule], Rule]:
    """Register a rule as an operator under its own name."""

    def register(rule: Rule) -> Rule:
        name = _name(rule)
        if name in REGISTRY:
            raise ValueError(f"two operators are called {name}")
        family = rule.__module__.rpartition(".")[2].partition("_")[0]
        first = Form(name, rule, is_new=False)
        REGISTRY[name] = Operator(name, family, cause, accepted, strengths, judged, ends, (first,))
        return rule

    return register


def crash(cause: str, *, accepted: tuple[str, ...] = ()) -> Callable[[Rule], Rule]:
    """Register an operator after which the program raises."""
    return operator(cause, accepted=accepted, judged=Judged.ALWAYS, ends=Ends.CRASHES)


def oddity() -> Callable[[Rule], Rule]:
    """Register an innocent modification."""
    return operator(None)


def form(of: Rule, *, is_new: bool = False) -> Callable[[Rule], Rule]:
    """Register a rule as another form of the fault whose first form is `of`."""

    def register(rule: Rule) -> Rule:
        add_form(of, Form(_name(rule), rule, is_new))
        return rule

    return register


def add_form(of: Rule, more: Form) -> None:
    """Add a form to the operator whose first form is `of`."""
    mine = REGISTRY[_name(of)]
    if any(f.name == more.name for f in mine.forms):
        raise ValueError(f"two forms of {mine.name} are called {more.name}")
    REGISTRY[mine.name] = replace(mine, forms=(*mine.forms, more))


def _name(rule: Rule) -> str:
    return rule.__name__.replace("_", "-")


def all_operators() -> tuple[Operator, ...]:
    """Return every operator of every family with all of its forms."""
    forms = importlib.import_module("bench.corpus.forms")
    for package in (importlib.import_module(__name__), forms):
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(info.name)
    return tuple(REGISTRY[name] for name in sorted(REGISTRY))


def one(edit: Edit) -> Change:
    """Return the change of a single edit that is the fault itself."""
    return Change((edit,), edit)


def many(fault: Edit, *others: Edit) -> Change:
    """Return a change of several edits, the first of which is the fault."""
    return Change((fault, *others), fault)
