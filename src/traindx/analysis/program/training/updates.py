"""How weights are updated: what becomes of gradients between a backward pass and what follows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

from traindx.analysis.program.execution.events import (
    EventForm,
    Guard,
    LoopRun,
    ProgramEvent,
)
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    FunctionValue,
    Items,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do, is_gradient, model_of
from traindx.analysis.program.training.gradients import runs_behind
from traindx.analysis.program.training.kinds import Kind, names_of
from traindx.analysis.program.training.operations import is_in_place, operation_name
from traindx.analysis.program.training.ownership import holders, owns, parameters_given
from traindx.analysis.program.training.phases import source_of
from traindx.analysis.program.training.settings import one_number

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

COMPUTES = frozenset({Do.BACKWARD, Do.GRAD})
UPDATES = frozenset({Do.STEP, Do.MANUAL_UPDATE})
REACHED = frozenset({"operator.eq", "operator.ge"})
NOT_REACHED = frozenset({"operator.ne", "operator.lt"})


def excludes(one: ProgramEvent, other: ProgramEvent) -> bool:
    """Tell whether two events are on different ways of one condition, so that only one happens."""
    for a in one.guards:
        for b in other.guards:
            if a.holds is b.holds:
                continue
            if a.test is not None and a.test is b.test:
                return True
            if a.site.node is b.site.node and one.turns == other.turns:
                return True
    return False


def happens_with(one: ProgramEvent, other: ProgramEvent) -> bool:
    """Tell whether an event happens wherever another does: on no condition but the other's."""
    conditions = {(g.site.node, g.holds) for g in other.guards}
    return all((g.site.node, g.holds) in conditions for g in one.guards)


def shared_loop(one: ProgramEvent, other: ProgramEvent) -> LoopRun | None:
    """Return the innermost loop in the same turn of which both happen."""
    found = None
    for a, b in zip(one.turns, other.turns, strict=False):
        if a != b:
            break
        found = a.loop
    return found


@dataclass(frozen=True, eq=False)
class UpdateWindow:
    """What happens between two events, without what only happens on other ways."""

    story: Story
    first: ProgramEvent
    last: ProgramEvent

    @cached_property
    def events(self) -> tuple[ProgramEvent, ...]:
        return tuple(
            e
            for e in self.story.events
            if self.first.order < e.order < self.last.order
            and not excludes(e, self.last)
            and not excludes(e, self.first)
        )

    def does(self, *kinds: Do) -> list[Deed]:
        inside = {id(e) for e in self.events}
        return [d for d in self.story.does(*kinds) if id(d.event) in inside]


@dataclass(frozen=True, eq=False)
class Update:
    """A step of an optimizer, and the backward pass whose gradients it applies."""

    story: Story
    step: Deed
    backward: Deed

    @property
    def optimizer(self) -> Value | None:
        return self.step.subject

    @cached_property
    def between(self) -> UpdateWindow:
        """What happens to the gradients before they are applied."""
        return UpdateWindow(self.story, self.backward.event, self.step.event)


def updates(story: Story) -> Iterator[Update]:
    """Yield each step with the last backward pass before it, where one is in the same turn."""
    for step in story.does(Do.STEP):
        before = [d for d in story.does(*COMPUTES, Do.STEP) if d.event.order < step.event.order]
        for deed in reversed(before):
            if excludes(deed.event, step.event):
                continue
            if deed.do is Do.BACKWARD and is_one_turn(deed.event, step.event):
                yield Update(story, step, deed)
            if deed.do is not Do.STEP or deed.subject is step.subject:
                break


def is_one_turn(one: ProgramEvent, other: ProgramEvent) -> bool:
    """Tell whether two events are in the same turn of the loops around either of them.

    The turns of a loop over a list that is written down are steps of one program.
    """
    shared = list(zip(one.turns, other.turns, strict=False))
    return all(a == b for a, b in shared if a.loop is b.loop and not a.loop.is_whole)


def late_for(story: Story, clip: Deed) -> Deed | None:
    """Return the step that has used up the gradients before they are clipped."""
    event = clip.event
    if not event.turns or is_endless(event.argument("max_norm", 1)):
        return None
    order = _around(story, event)
    before = [d for d in order if d.event.order < event.order]
    if not before or before[-1].do is not Do.STEP:
        return None
    step = before[-1]
    is_sure = is_one_turn(step.event, event) or not step.event.guards
    if not is_sure or not any(d.do is Do.BACKWARD for d in before):
        return None
    for later in (d for d in order if d.event.order > event.order):
        if later.do is not Do.STEP:
            break
        if later.subject is not step.subject:
            return None  # on the way to another optimizer
    between = UpdateWindow(story, step.event, event).events
    return None if writes_gradients(story, between) else step


def has_gradients(story: Story, clip: Deed) -> bool:
    """Tell whether anything has computed gradients before a clip."""
    return any(d.event.order < clip.event.order for d in _around(story, clip.event))


def _around(story: Story, event: ProgramEvent) -> list[Deed]:
    """What computes or uses gradients before and after an event, on its own way."""
    found = story.does(*COMPUTES, Do.MANUAL_UPDATE, Do.STEP)
    return [d for d in found if not excludes(d.event, event)]


@dataclass(frozen=True, eq=False)
class Repetition:
    """Two backward passes of one place, one turn of a loop after the other."""

    story: Story
    first: Deed
    second: Deed
    loop: LoopRun

    @cached_property
    def between(self) -> UpdateWindow:
        return UpdateWindow(self.story, self.first.event, self.second.event)


def repetitions(story: Story) -> Iterator[Repetition]:
    """Yield backward passes of one place, reached by the same calls, that follow each other.

    A framework's own clears the gradients before each of its passes, whoever's they are.
    """
    last: dict[object, Deed] = {}
    for deed in story.does(Do.BACKWARD):
        if deed.event.by_framework:
            continue
        way = (deed.event.node, *(site.node for site in deed.event.callers))
        before = last.get(way)
        last[way] = deed
        loop = None if before is None else _loop_between(before.event, deed.event)
        if before is not None and loop is not None:
            yield Repetition(story, before, deed, loop)


def _loop_between(one: ProgramEvent, other: ProgramEvent) -> LoopRun | None:
    """Return the loop of which one event is a turn after the other, in no new run inside."""
    found = None
    for a, b in zip(one.turns, other.turns, strict=False):
        if found is None and a != b:
            if a.loop is not b.loop:
                return None
            found = a.loop
        elif found is not None and a.number > b.number:
            return None
    return found


ACCUMULATES = re.compile(r"accum|micro", re.IGNORECASE)
CUTS = frozenset({"chunk", "split", "tensor_split", "unbind"})
GROUPS = ("islice", "chunked", "batched", "ichunked", "grouper")


def group_step(repeated: Repetition) -> Deed | None:
    """Return the step after a loop over the micro-batches of one update, which begins cleared."""
    story, loop = repeated.story, repeated.loop
    if repeated.between.does(Do.STEP, Do.ZERO_GRAD, Do.MANUAL_UPDATE):
        return None
    if not is_group(story, loop):
        return None
    around = repeated.second.event.turns[
        : [t.loop for t in repeated.second.event.turns].index(loop)
    ]
    own = [
        d
        for d in story.does(Do.STEP, Do.ZERO_GRAD)
        if around and d.event.turns[: len(around)] == around and loop not in d.event.loops
    ]
    step = next((d for d in own if d.do is Do.STEP and d.event.order > repeated.second.event.order),
                None)  # fmt: skip
    is_cleared = any(d.do is Do.ZERO_GRAD and not d.event.guards for d in own)
    return step if is_cleared else None


def is_group(story: Story, loop: LoopRun) -> bool:
    """Tell whether a loop goes over several micro-batches: of a batch, or some of a loader."""
    over = None if loop.over is None else source_of(loop.over)
    if over is None or runs_behind(over):  # the losses of one batch
        return False
    found = [v for v in (over, *over.inputs) if isinstance(v, Result)]
    if any(operation_name(v.maker) in CUTS and v.maker != "()" for v in found):
        return True
    if isinstance(over, Result) and over.maker == "builtins.range":
        bound = [v for a in over.args for v in origins(a, 20)]
        return any(ACCUMULATES.search(n) for v in bound for n in names_of(v))
    is_some = isinstance(over, Items) or any(
        isinstance(v, Result) and v.maker.rsplit(".", 1)[-1] in GROUPS for v in origins(over, 50)
    )
    return is_some and any(story.kind_of(v).kind is Kind.LOADER for v in origins(over, 50))


def ignored_accumulation(story: Story) -> Iterator[tuple[Value, Deed]]:
    """Yield the engines that are told to accumulate, and the steps at every batch beside them.

    Only `accumulate()` leaves steps out; without it, each batch is applied by itself.
    """
    for engine in story.made(Kind.ENGINE):
        given = engine.kwargs.get("gradient_accumulation_steps") if _is_plain(engine) else None
        number = one_number(story, given)
        if number is None or number <= 1 or story.escapes(engine) is not Answer.NO:
            continue
        asks = (e for e in story.events if e.receiver is engine)
        if any(e.name in (".accumulate", ".no_sync") for e in asks):
            continue
        for update in updates(story):
            event = update.step.event
            is_counted = any(_counts(g.test) for g in event.guards if g.test is not None)
            if update.backward.through is engine and not is_counted:
                yield engine, update.step


def _is_plain(engine: Value) -> TypeGuard[Result]:
    return isinstance(engine, Result) and engine.maker.endswith("Accelerator")


def _counts(test: Value) -> bool:
    """Tell whether a condition counts batches, as whoever accumulates by hand does."""
    found = (v for v in origins(test, 30) if isinstance(v, Result))
    return any(v.maker in ("operator.mod", "operator.eq", "operator.ge") for v in found)


def clears(zero: Deed, optimizer: Value, story: Story) -> Answer:
    """Tell whether a call clears the gradients that an optimizer applies."""
    cleared = zero.subject
    if cleared is None:
        return Answer.UNKNOWN
    if cleared is optimizer:
        return Answer.YES
    held = {id(m) for m, _ in holders(parameters_given(optimizer))}
    if story.is_kind(cleared, Kind.OPTIMIZER):
        others = {id(m) for m, _ in holders(parameters_given(cleared))}
        return Answer.NO if held and others and not held & others else Answer.UNKNOWN
    model = model_of(cleared) or cleared
    is_hidden = isinstance(model, (Unknown, Part, Choice)) and id(model) not in held
    return Answer.UNKNOWN if is_hidden else owns(optimizer, model)


def is_trusted(story: Story, optimizer: Value | None) -> bool:
    """Tell whether a value is certainly an optimizer that only steps: none of a class in sight."""
    if optimizer is None or story.kind_of(optimizer).kind is not Kind.OPTIMIZER:
        return False
    return is_made(optimizer) or not story.program.defines_method("step")


def is_made(optimizer: Value) -> bool:
    """Tell whether an optimizer is made by a library in sight."""
    return any(isinstance(o, Result) and parameters_given(o) for o in options_of(optimizer))


def changed_tensor(value: Value | None) -> Value | None:
    """Return the tensor that operations in place were done to: `w` of `w -= lr * w.grad`."""
    while isinstance(value, Result) and value.args and value.maker.startswith("operator.i"):
        if not is_in_place(value.maker):
            break
        value = value.args[0]
    return value


def has_closure(step: Deed) -> bool:
    """Tell whether gradients are computed inside of a step, out of sight."""
    given = [*step.event.args, *step.event.kwargs.values()]
    return step.through is None and any(not isinstance(g, FunctionValue) for g in given)


def writes_gradients(story: Story, events: Iterable[ProgramEvent]) -> bool:
    """Tell whether gradients are written by hand: `p.grad = g`, `p.grad.copy_(g)`."""
    deeds = {id(d.event) for d in story.deeds}
    for event in events:
        if id(event) in deeds:
            continue
        if event.act is EventForm.STORE:
            if event.name == "grad" and not isinstance(event.args[0], Known):
                return True
        elif is_in_place(event.name):
            changed = event.receiver if event.receiver is not None else event.args[0]
            if is_gradient(changed):
                return True
    return False


def is_handed_on(story: Story, events: Iterable[ProgramEvent], *values: Value | None) -> bool:
    """Tell whether something out of sight gets an optimizer or model, or what they hold."""
    held = [v for v in values if v is not None]
    held += [m for v in held for m, _ in holders(parameters_given(v))]
    for event in events:
        if event.is_own or event.act is EventForm.STORE or story.is_harmless(event):
            continue
        if any(story.is_given(event, v) for v in held):
            return True
        given = (*event.args, *event.kwargs.values())
        if any(m is v for a in given for m, _ in holders(a) for v in held):
            return True
    return False


def period_of(story: Story, event: ProgramEvent) -> Value | None:
    """Return the n of something that happens every n turns: `if (i + 1) % n == 0`."""
    found = count_of_turns(story, event)
    return None if found is None else found.args[1]


def count_of_turns(story: Story, event: ProgramEvent) -> Result | None:
    """Return the `i % n`, or the `count == n` with a count that begins anew, that decides."""
    for guard in reversed(event.guards):
        for found in origins(guard.test, 30) if guard.test is not None else ():
            if isinstance(found, Result) and found.maker == "operator.mod":
                return found
            if isinstance(found, Result) and _ends_a_count(story, found, guard):
                return found
    return None


def _ends_a_count(story: Story, compared: Result, guard: Guard) -> bool:
    """Tell whether a count of turns has come to its end here, and begins at zero again."""
    reaches = REACHED if guard.holds else NOT_REACHED
    count = compared.args[0] if compared.maker in reaches else None
    is_count = isinstance(count, Result) and count.maker in ("operator.iadd", "operator.add")
    if count is None or not is_count or not any(constant(v) == 1 for v in count.inputs):
        return False
    return any(_is_same_way(g, guard) for g in _cleared_under(story, count.names))


def _cleared_under(story: Story, names: frozenset[str]) -> Iterator[Guard]:
    """Yield the conditions under which a name or attribute becomes zero."""
    for given in story.execution.assignments:
        if given.name in names and constant(given.value) == 0:
            yield from given.guards
    for event in story.events:
        if event.act is EventForm.STORE and event.name in names and constant(event.args[0]) == 0:
            yield from event.guards


def _is_same_way(one: Guard, other: Guard) -> bool:
    return one.site.node is other.site.node and one.holds is other.holds


def is_endless(bound: Value | None) -> bool:
    """Tell whether a number is infinite: `float("inf")`, `math.inf`, `torch.inf`."""
    if bound is None:
        return False
    text = constant(bound)
    if isinstance(bound, Result) and bound.maker == "builtins.float" and bound.args:
        text = constant(bound.args[0])
    name = getattr(bound, "name", "")
    return str(text).lower() in ("inf", "infinity") or str(name).rsplit(".", 1)[-1] == "inf"


def _update_on_old_gradients(repeated: Repetition) -> Deed | None:
    """The update that the next one follows without any clearing in between."""
    story, between = repeated.story, repeated.between
    if between.does(Do.GRAD) or writes_gradients(story, between.events):
        return None
    cleared = between.does(Do.ZERO_GRAD)
    models = [d.subject for d in between.does(Do.FORWARD)]
    for update in between.does(*UPDATES):
        if update.subject is None or is_handed_on(story, between.events, update.subject, *models):
            continue
        if update.do is Do.STEP and not _is_plain_step(story, update):
            continue
        is_cleared = any(clears(d, update.subject, story) is not Answer.NO for d in cleared)
        if not is_cleared and _is_repeated(repeated, update):
            return update
    return None


def _is_plain_step(story: Story, step: Deed) -> bool:
    """Tell whether a step is certain to leave the gradients as they are."""
    optimizer = step.subject
    if optimizer is None or not is_trusted(story, optimizer) or has_closure(step):
        return False
    return is_made(optimizer) or not any(s.does(Do.ZERO_GRAD) for s in story.program.stories)


def _is_repeated(repeated: Repetition, update: Deed) -> bool:
    """Tell whether the same optimizer, or the same weight, is updated after the next pass too."""
    tensor = changed_tensor(update.subject)
    for later in repeated.story.does(update.do):
        is_same = changed_tensor(later.subject) is tensor and later.event.node is update.event.node
        if is_same and later.event.order > repeated.second.event.order:
            return True
    return False


def updates_on_old_gradients(story: Story) -> Iterator[tuple[Repetition, Deed]]:
    """Yield the updates that the next one follows without any clearing in between."""
    for repeated in repetitions(story):
        update = _update_on_old_gradients(repeated)
        if update is not None:
            yield repeated, update
