"""The interpreter: runs a program on values that stand for what it would compute with.

Nothing of the user's code is executed. Both sides of a condition that the source does not decide
are run from the same state and joined; a loop of unknown length is run twice, so that what one turn
leaves to the next is seen; calls of the project's own functions are followed where they stand.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any

from traindx.analysis.program.execution.events import (
    Assignment,
    EventForm,
    Guard,
    LoopExit,
    LoopRun,
    ProgramEvent,
    Turn,
)
from traindx.analysis.program.execution.values import (
    Answer,
    Fields,
    Scope,
    Site,
    Value,
    begin_apart,
    joined,
)
from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Module
from traindx.analysis.time_limit import OFTEN, is_out_of_time

if TYPE_CHECKING:
    from traindx.analysis.program.execution.examples import Example

MAX_WORK = 150_000  # expressions of one program; a script of a thousand lines takes some 20,000
MAX_DEPTH = 14  # calls of the project's functions inside each other
TURNS = 2  # of a loop of unknown length


class BlockEnd(Enum):
    """How a block ended."""

    NEXT = "next"
    BREAK = "break"
    CONTINUE = "continue"
    RETURN = "return"
    RAISE = "raise"


MEETS_AGAIN = (BlockEnd.BREAK, BlockEnd.CONTINUE, BlockEnd.RETURN)


class OutOfWork(Exception):
    """The program is too large to be followed to its end."""


class FailedCall(Exception):
    """What the program does fails for certain, inside of a `try`; `kind` is the exception's."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class _Missing(Value):
    """The mark of a name or field that did not exist."""


MISSING = _Missing()
NONE_NAMED: Mapping[str, Value] = {}  # of the many calls without arguments by name
# by the container's identity and the key: the container, the key, and what is or was there
Changes = dict[tuple[int, object], tuple[dict[object, Value], object, Value]]


class Machine:
    """The state of one interpretation."""

    def __init__(self, project: Project, main: Module) -> None:
        self.project = project
        self.main = main
        self.events: list[ProgramEvent] = []
        self.examples: list[Example] = []  # what its loaders hand out
        self.assignments: list[Assignment] = []
        self.exits: list[LoopExit] = []
        self.work = 0
        self.depth = 0
        self.turns: tuple[Turn, ...] = ()
        self.guards: tuple[Guard, ...] = ()
        self.contexts: tuple[Value, ...] = ()
        self.callers: tuple[Site, ...] = ()
        self.within: tuple[Value, ...] = ()
        self.pass_is_training = Answer.UNKNOWN
        self.gradients = Answer.YES
        self.files: dict[Module, Scope] = {}
        self.loaded: set[Module] = set()  # files whose top level was run
        self.entered: set[ast.AST] = set()
        self.active: list[ast.AST] = []
        self.bound: list[tuple[ast.AST, int]] = []  # the same, with the objects they are of
        self.gave_up = ""
        self.bindings: list[dict[str, Value]] = []  # what names held where a call or file ended
        self.drawn_in: tuple[Turn, ...] = ()  # the turns in which a stream gave its first example
        self.returned: Value | None = None  # by a function that nothing in sight calls
        self.may_have_continued = False  # in one of the ways of the statement that has just run
        self.drawn: dict[
            ast.AST, Value
        ] = {}  # what `next` gives in this turn, where it ends a loop
        self.tried: tuple[Guard, ...] | None = None  # the conditions around the innermost `try`
        self._journals: list[Changes] = []
        self._left: list[tuple[BlockEnd, Changes]] = []  # what sides that left a block changed

    def fail(self, kind: str) -> None:
        """Leave the `try` that we are in; elsewhere, and under a condition, go on as if not."""
        if self.tried is not None and len(self.tried) == len(self.guards):
            raise FailedCall(kind)

    def is_repeated(self, born: tuple[object, ...] = ()) -> bool:
        """Tell whether we are in a loop of unknown length that began after something was made."""
        return any(not turn.loop.is_whole for turn in self.turns[len(born) :])

    def forget_draws(self) -> None:
        """Begin with another stream."""
        self.drawn_in = ()

    def spend(self) -> None:
        self.work += 1
        if self.work > MAX_WORK or (self.work % OFTEN == 0 and is_out_of_time()):
            raise OutOfWork

    def write(self, container: dict[object, Value], key: object, value: Value) -> None:
        """Change a scope or object so that it can be undone."""
        if self._journals:
            journal, place = self._journals[-1], (id(container), key)
            if place not in journal:
                journal[place] = (container, key, container.get(key, MISSING))
        if value is MISSING:
            container.pop(key, None)
        else:
            container[key] = value

    def record(
        self,
        act: EventForm,
        site: Site,
        name: str,
        receiver: Value | None,
        args: Sequence[Value],
        kwargs: Mapping[str, Value],
        function: ast.AST | None,
        result: Value | None = None,
    ) -> ProgramEvent:
        """Note an event."""
        event = ProgramEvent(
            len(self.events), act, site, name, receiver, tuple(args),
            dict(kwargs) if kwargs else NONE_NAMED, self.turns, self.guards, self.gradients,
            self.contexts, self.callers,
            function if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else None,
            self.within, result, pass_is_training=self.pass_is_training,
        )  # fmt: skip
        self.events.append(event)
        return event

    def note_assignment(self, site: Site, name: str, value: Value) -> None:
        """Note that a name is given a value."""
        self.assignments.append(
            Assignment(len(self.events), site, name, value, self.turns, self.guards)
        )

    def explore(
        self,
        sides: Sequence[tuple[Guard | None, Callable[[], BlockEnd]]],
        *,
        keeps_all: bool = False,
    ) -> list[BlockEnd]:
        """Run each side from the same state, and go on with what holds after any of them.

        A side that leaves the block does not go on, unless `keeps_all`.
        """
        ended: list[tuple[BlockEnd, Changes]] = []
        recording, recorded = self.gradients, []
        for guard, side in sides:
            self._journals.append({})
            before, self.gradients = self.guards, recording
            if guard is not None:
                self.guards = (*before, guard)
            try:
                status = side()
            except BaseException:
                self._undo(self._journals.pop())
                raise
            finally:
                self.guards = before
            ended.append((status, self._undo(self._journals.pop())))
            recorded.append(self.gradients)
        self._join([(BlockEnd.NEXT, changes) for _, changes in ended] if keeps_all else ended)
        if not keeps_all and any(status is BlockEnd.NEXT for status, _ in ended):
            self._left += [(s, changes) for s, changes in ended if s in MEETS_AGAIN and changes]
        live = [g for g, (s, _) in zip(recorded, ended, strict=True) if s is BlockEnd.NEXT]
        found = set(live or recorded)
        self.gradients = found.pop() if len(found) == 1 else Answer.UNKNOWN
        return [status for status, _ in ended]

    def _undo(self, journal: Changes) -> Changes:
        """Take back changes, and return what stood there."""
        after = {
            place: (container, key, container.get(key, MISSING))
            for place, (container, key, _) in journal.items()
        }
        for container, key, old in reversed(journal.values()):
            if old is MISSING:
                container.pop(key, None)
            else:
                container[key] = old
        return after

    def _join(self, ended: Sequence[tuple[BlockEnd, Changes]]) -> None:
        """Keep what the sides that go on agree on, and choices of what they do not."""
        kept = [c for status, c in ended if status is BlockEnd.NEXT] or [c for _, c in ended]
        touched = {place: change for _, changes in ended for place, change in changes.items()}
        for place, (container, key, _) in touched.items():
            old = container.get(key, MISSING)
            found = [side[place][2] if place in side else old for side in kept]
            value = _any_of(found)
            if value is not old:
                self.write(container, key, value)

    def meet(self, end: BlockEnd, local: dict[Any, Value] | None = None) -> None:
        """Go on where sides that left a block come back: what they changed may hold here too.

        Names that end with the block (`local`) are left out.
        """
        met = [changes for status, changes in self._left if status is end]
        self._left = [left for left in self._left if left[0] is not end]
        for container, key, value in (c for changes in met for c in changes.values()):
            if container is not local:
                self.write(container, key, _any_of([container.get(key, MISSING), value]))

    @contextmanager
    def called(self, scope: Scope) -> Iterator[None]:
        """Run the body of a function; what an early `return` left behind holds after it."""
        before, self._left = self._left, []
        try:
            yield
            self.meet(BlockEnd.RETURN, scope.names)
        finally:
            self._left = before

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Run something whose changes are taken back afterwards; what it makes stays as it is."""
        start = begin_apart()
        self._journals.append({})
        try:
            yield
        finally:
            journal = self._journals.pop()
            self._undo({p: c for p, c in journal.items() if not _is_newer(c[0], start)})

    @contextmanager
    def inside(self, *, turn: Turn | None = None, guard: Guard | None = None) -> Iterator[None]:
        """Run something in a turn of a loop, or under a condition."""
        turns, guards = self.turns, self.guards
        if turn is not None:
            self.turns = (*turns, turn)
        if guard is not None:
            self.guards = (*guards, guard)
        try:
            yield
        finally:
            self.turns, self.guards = turns, guards

    @contextmanager
    def switched(self, gradients: Answer) -> Iterator[None]:
        """Run something with autograd on or off."""
        before, self.gradients = self.gradients, gradients
        try:
            yield
        finally:
            self.gradients = before

    @contextmanager
    def context(self, value: Value) -> Iterator[None]:
        """Run something inside a `with`."""
        before = self.contexts
        self.contexts = (*before, value)
        try:
            yield
        finally:
            self.contexts = before

    def run_loop(
        self,
        loop: LoopRun,
        elements: Iterator[Value | None],
        body: Callable[[Value | None], BlockEnd],
        first: int = 0,
    ) -> BlockEnd:
        """Run a loop's body for each element; the first is the turn of that number."""
        if loop.occasion is None:
            whole = ((t.loop.site.node, t.number) for t in self.turns if t.loop.is_whole)
            loop.occasion = (*(site.node for site in self.callers), *whole)
        around = self.turns[-1].loops if self.turns else ()
        for number, element in enumerate(elements, first):
            with self.inside(turn=Turn(loop, number, (*around, loop))):
                status = body(element)
                self.meet(BlockEnd.CONTINUE)
            if status in (BlockEnd.RETURN, BlockEnd.RAISE, BlockEnd.BREAK):
                break
        else:
            status = BlockEnd.NEXT
        self.meet(BlockEnd.BREAK)
        return status


def _is_newer(container: dict[object, Value], start: int) -> bool:
    return isinstance(container, Fields) and container.moment >= start


def _any_of(values: Sequence[Value]) -> Value:
    """Join values; where a name is bound on one side only, it is what it was bound to."""
    first = values[0]
    if values.count(first) == len(values):
        return first
    found = [v for v in values if v is not MISSING]
    if not found:
        return MISSING
    result = found[0]
    for other in found[1:]:
        result = joined(result, other)
    return result
