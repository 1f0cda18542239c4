"""What a program does, one event after another: calls and stores, and what holds around each."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from traindx.analysis.program.execution.values import Answer, Result, Site, Value
from traindx.analysis.program.syntax import Function, Module
from traindx.model.findings import Evidence, Location


@dataclass(slots=True, eq=False)
class LoopRun:
    """A loop that was run: its statement and what it goes over, where it goes over something."""

    site: Site
    over: Value | None
    is_whole: bool = False  # every turn was run: its members are written down
    # where it was called from, and in which turns of loops that are run whole: one statement that
    # trains and evaluates in turn (`for phase in ["train", "val"]`) is run on several occasions
    occasion: tuple[object, ...] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a loop. Two are run of a loop of unknown length: the first, and one after it."""

    loop: LoopRun
    number: int
    # the loop with those around it, outermost first
    loops: tuple[LoopRun, ...] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A condition that the source does not decide, and which way it went."""

    test: Value | None
    site: Site
    holds: bool

    @property
    def true_test(self) -> Value | None:
        """What is true here, where that is the test itself or what a `not` is said of."""
        test, holds = self.test, self.holds
        while isinstance(test, Result) and test.maker == "operator.not" and test.args:
            test, holds = test.args[0], not holds
        return test if holds else None


class EventForm(Enum):
    """The forms of events."""

    CALL = "call"
    STORE = "store"  # of an attribute or item: `name` is the key, the value is the argument


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """A value that a name is given, after the events before `order`."""

    order: int
    site: Site
    name: str
    value: Value
    turns: tuple[Turn, ...]
    guards: tuple[Guard, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LoopExit:
    """A `break` that a loop comes to, after the events before `order`, under its conditions."""

    order: int
    site: Site
    turns: tuple[Turn, ...]
    guards: tuple[Guard, ...]


@dataclass(slots=True, eq=False)
class ProgramEvent:
    """One thing that the program does.

    `name` is the dotted name of what is called; of a method of a value that is no object of the
    project it is the method's, with a dot before it, and `receiver` is the value.
    """

    order: int
    act: EventForm
    site: Site
    name: str
    receiver: Value | None
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    turns: tuple[Turn, ...]
    guards: tuple[Guard, ...]
    gradients: Answer
    contexts: tuple[Value, ...]
    callers: tuple[Site, ...]
    function: Function | ast.Lambda | None
    within: tuple[Value, ...] = ()  # the models whose forward pass is running, outermost first
    result: Value | None = None
    is_own: bool = False  # a function or class of the project, which was followed
    is_training: Answer = Answer.UNKNOWN  # the mode of a model that is called
    mode: Value | None = None  # the same, as what the program set it to
    pass_is_training: Answer = Answer.UNKNOWN  # the mode of the model whose forward pass is running
    handed_modes: tuple[tuple[Value, Value], ...] = ()  # models among the arguments, with modes
    callee: Value | None = None  # the function or class of the project
    is_called_back: bool = False  # by something out of sight, which gets its result
    by_framework: bool = False  # Lightning or Transformers does it in the user's place

    @property
    def module(self) -> Module:
        return self.site.module

    @property
    def node(self) -> ast.AST:
        return self.site.node

    @property
    def is_one_of(self) -> bool:
        """Whether it is one of several calls that may be meant here: `(a if gpu else b)(x)`."""
        return any(guard.site.node is self.node for guard in self.guards)

    @property
    def statement(self) -> ast.stmt | None:
        """The statement in which it is done."""
        return self.module.statement_of(self.node)

    @property
    def function_name(self) -> str:
        """The name of the function in which it is done; empty at the top level of a file."""
        return getattr(self.function, "name", "")

    @property
    def is_dropped(self) -> bool:
        """Whether what it returns is thrown away at once."""
        statement = self.statement
        return isinstance(statement, ast.Expr) and statement.value is self.node

    @property
    def location(self) -> Location:
        return self.module.location(self.statement or self.node)

    @property
    def is_tried(self) -> bool:
        """Whether it stands in the body of a `try`: it may be there to see whether it fails."""
        statement = self.statement
        return statement is not None and isinstance(self.module.parents.get(statement), ast.Try)

    @property
    def loops(self) -> tuple[LoopRun, ...]:
        return self.turns[-1].loops if self.turns else ()

    @property
    def is_repeated(self) -> bool:
        """Whether the function in which it is done does it in a loop of its own."""
        sites = [loop.site for loop in self.loops]
        return any(site.module.function_of(site.node) is self.function for site in sites)

    def argument(self, name: str, position: int | None = None) -> Value | None:
        """Return an argument by keyword, or by position where that is given."""
        if name in self.kwargs:
            return self.kwargs[name]
        if position is not None and position < len(self.args):
            return self.args[position]
        return None

    def cite(self, says: str) -> Evidence:
        """Return the event as evidence that can be looked up."""
        return self.module.cite(self.node, says)


def is_same_call(one: ProgramEvent, other: ProgramEvent) -> bool:
    """Tell whether two events are of one place, reached by the same calls."""
    ways = ([site.node for site in e.callers] for e in (one, other))
    return one.node is other.node and next(ways) == next(ways)
