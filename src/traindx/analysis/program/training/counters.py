"""Sums that grow in a loop: what they start from, what is added, and what they are divided by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import (
    EventForm,
    LoopRun,
    ProgramEvent,
    Turn,
)
from traindx.analysis.program.execution.values import (
    Choice,
    Known,
    Part,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.facts.certainty import makers
from traindx.analysis.program.training.operations import (
    name_of_operation,
    operation_name,
    operation_of,
)
from traindx.analysis.program.training.phases import source_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

ADDS = ("operator.iadd", "operator.add")
SAME_NUMBER = frozenset({"item", "float", "int", "round", "cpu", "detach", "numpy", "double",
                         "builtins.float", "builtins.int", "builtins.round"})  # fmt: skip
SIZES = frozenset({"size", "numel", "len", "builtins.len"})
ZEROES = frozenset({".zero_", ".fill_", ".reset", ".clear"})
NEAR = 60  # values that are looked through from a sum to the one it grew from


@dataclass(frozen=True, eq=False)
class Counter:
    """A statement that adds to a sum again and again: each time it is run, in order."""

    story: Story
    events: tuple[ProgramEvent, ...]

    @property
    def terms(self) -> list[Value]:
        """What is added."""
        return [e.args[1] for e in self.events]

    @property
    def loop(self) -> LoopRun:
        """The loop in which it grows."""
        return self.events[0].loops[-1]

    @property
    def name(self) -> str:
        result = self.events[-1].result
        return result.called("the sum") if result is not None else "the sum"

    def carries_over(self, loop: LoopRun) -> bool:
        """Tell whether it goes on growing from one turn of an outer loop to the next."""
        node = loop.site.node
        turns: dict[int, list[ProgramEvent]] = {}
        for event in self.events:
            for turn in event.turns:
                if turn.loop.site.node is node:
                    turns.setdefault(turn.number, []).append(event)
        if len(turns) < 2 or self._is_cleared(loop):
            return False
        (_, first), (_, second) = sorted(turns.items())[:2]
        behind = {id(v) for v in origins(second[0].args[0], NEAR)}
        return id(first[-1].result) in behind and not behind & self._starts_in(loop)

    def _starts_in(self, loop: LoopRun) -> set[int]:
        """The constants that names and attributes are given inside of a loop."""
        assigned = [(a.value, a.turns) for a in self.story.execution.assignments]
        stores = (e for e in self.story.events if e.act is EventForm.STORE)
        assigned += [(e.args[0], e.turns) for e in stores]
        return {
            id(value)
            for value, turns in assigned
            if isinstance(value, Known) and any(t.loop.site.node is loop.site.node for t in turns)
        }

    def _is_cleared(self, loop: LoopRun) -> bool:
        sums = {id(e.result) for e in self.events} | {id(e.args[0]) for e in self.events}
        inside = (e for e in self.story.events if e.name in ZEROES)
        return any(id(e.receiver) in sums for e in inside
                   if any(x.site.node is loop.site.node for x in e.loops))  # fmt: skip


def counters(story: Story) -> dict[object, Counter]:
    """Return the statements of a story that add to a sum turn after turn, by their node."""
    found: dict[object, list[ProgramEvent]] = {}
    for event in story.events:
        if event.act is EventForm.CALL and event.name in ADDS and event.loops and event.result:
            found.setdefault(event.node, []).append(event)
    return {
        node: Counter(story, tuple(events))
        for node, events in found.items()
        if len(events) > 1 and any(_grows(a, b) for a, b in pairwise(events))
    }


def _grows(first: ProgramEvent, second: ProgramEvent) -> bool:
    return any(v is first.result for v in origins(second.args[0], NEAR))


def factors(value: Value, depth: int = 8) -> Iterator[Value]:
    """Yield what is multiplied in a number, through what only changes its type."""
    operation = operation_of(value)
    if isinstance(value, Choice):
        for option in value.options:
            yield from factors(option, depth - 1)
    elif operation is not None and operation.operands and depth:
        if operation.name in SAME_NUMBER:
            yield from factors(operation.operands[0], depth - 1)
        elif operation.name == "mul":
            for operand in operation.operands:
                yield from factors(operand, depth - 1)
        else:
            yield value
    else:
        yield value


def quotients(story: Story) -> Iterator[tuple[ProgramEvent, Value, Value]]:
    """Yield divisions with what is divided and by what, but for those that are divided again."""
    for event in story.recall(_divided):
        operation = operation_of(event.result)
        if operation is None or len(operation.operands) < 2:
            continue
        if event.result is not None and not _is_divided(story, event.result):
            yield event, operation.operands[0], operation.operands[1]


def _divided(story: Story) -> list[ProgramEvent]:
    """The calls that divide."""
    called = (e for e in story.events if e.act is EventForm.CALL and not e.is_own)
    return [e for e in called if name_of_operation(e.result) == "div"]


def _is_divided(story: Story, value: Value, depth: int = 4) -> bool:
    for user in story.made_from(value):
        operation = operation_of(user)
        if operation is None or not operation.operands:
            continue
        if operation.name == "div" and operation.operands[0] is value:
            return True
        if depth and operation.name in (*SAME_NUMBER, "mul") and _is_divided(
            story, user, depth - 1
        ):  # fmt: skip
            return True
    return False


def counter_of(value: Value, known: dict[object, Counter]) -> Counter | None:
    """Return the counter that a number is the sum of; None where it is none."""
    for found in factors(value):
        node = None if found.site is None else found.site.node
        if isinstance(found, Result) and found.maker in ADDS and node in known:
            return known[node]
    return None


def half_reset(story: Story, event: ProgramEvent, above: Value, below: Value) -> str:
    """Return which of two sums goes on from an earlier turn around a quotient, where one does.

    Empty where both begin anew or go on, and where that is not known of either.
    """
    for turn in event.turns:
        if turn.number == 0 or turn.loop.is_whole:
            continue
        first, second = (_goes_on(story, v, turn) for v in (above, below))
        if first is not None and second is not None and first is not second:
            return "above" if first else "below"
    return ""


def _goes_on(story: Story, value: Value, turn: Turn) -> bool | None:
    """Tell whether a sum has what an earlier turn added to it; None where it may be no sum."""
    made, is_sum = makers(story), False
    for _ in range(NEAR):
        if isinstance(value, Known):
            return False if is_sum else None
        if not isinstance(value, Result):
            return None
        if value.maker == "builtins.max":  # held away from zero
            rest = [v for v in value.args if not isinstance(v, Known)]
            value = rest[0] if len(rest) == 1 else Known(None)
            continue
        event = made.get(value)
        if value.maker not in ADDS or event is None:
            return None
        if any(t.loop is turn.loop and t.number < turn.number for t in event.turns):
            return True
        is_sum = is_sum or any(t.loop is not turn.loop for t in event.turns)
        value = value.args[0]
    return None


def length_of(value: Value) -> Value | None:
    """Return what a number is the length of: `loader` of `len(loader)`."""
    is_length = isinstance(value, Result) and value.maker == "builtins.len" and len(value.args) == 1
    return value.args[0] if isinstance(value, Result) and is_length else None


def is_over(run: LoopRun, value: Value) -> bool:
    """Tell whether a loop goes over a value."""
    return run.over is not None and source_of(run.over) is source_of(value)


def is_size(value: Value) -> bool:
    """Tell whether a number says how many there are: a constant, a length, a batch size."""
    if isinstance(value, Known):
        return True
    if isinstance(value, Part) and isinstance(value.of, Part) and value.of.key == "shape":
        return True
    return isinstance(value, Result) and (
        value.maker in SIZES or operation_name(value.maker) in SIZES
    )


def is_index(value: Value) -> bool:
    """Tell whether a value is the running number of `enumerate`."""
    drawn = value.args[0] if isinstance(value, Result) and value.maker == "builtins.next" else None
    return isinstance(drawn, Result) and drawn.maker == "builtins.range" and not drawn.args


def counts_matches(value: Value) -> bool:
    """Tell whether a value is a number of equal elements, and no share of them."""
    seen: set[str] = set()
    pending = [value]
    while pending:
        operation = operation_of(pending.pop())
        if operation is None or not operation.operands or "eq" in seen:
            continue
        seen.add(operation.name)
        if operation.name in (*SAME_NUMBER, "sum", "eq", "long", "astype", "to", "type"):
            pending.append(operation.operands[0])
    return {"sum", "eq"} <= seen and not seen & {"mean", "div"}


def is_one(value: Value) -> bool:
    """Tell whether a value is the number one."""
    return constant(value) == 1
