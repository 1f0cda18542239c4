"""How weights are updated: what becomes of gradients between a backward pass and what follows."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
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
from traindx.analysis.program.execution.library import CLOSURES
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Items,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    is_same,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do, is_gradient, model_of
from traindx.analysis.program.training.conditions import contradicts
from traindx.analysis.program.training.freezing import is_ever_frozen
from traindx.analysis.program.training.gradients import runs_behind
from traindx.analysis.program.training.kinds import Kind, names_of
from traindx.analysis.program.training.layers import has_parameters, is_module, registered
from traindx.analysis.program.training.operations import is_in_place, operation_name
from traindx.analysis.program.training.ownership import holders, owns, parameters_given
from traindx.analysis.program.training.phases import source_of
from traindx.analysis.program.training.settings import one_number

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

COMPUTES = frozenset({Do.BACKWARD, Do.GRAD})
UPDATES = frozenset({Do.STEP, Do.MANUAL_UPDATE})
# what is done in place and leaves the numbers as they are
SAME_NUMBERS = frozenset(
    {".detach_", ".requires_grad_", ".share_memory_", ".squeeze_", ".unsqueeze_", ".t_"}
)
SPREAD = "operator.spread"
REACHED = frozenset({"operator.eq", "operator.ge"})
NOT_REACHED = frozenset({"operator.ne", "operator.lt"})


def excludes(one: ProgramEvent, other: ProgramEvent) -> bool:
    """Tell whether two events are on different ways of one condition, so that only one happens."""
    for a in one.guards:
        for b in other.guards:
            is_same_place = a.site.node is b.site.node and one.turns == other.turns
            if (is_same_place and a.holds is not b.holds) or contradicts(a, b):
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


def _order(deed: Deed) -> int:
    return deed.event.order


@dataclass(frozen=True, eq=False)
class UpdateWindow:
    """What happens between two events, without what only happens on other ways."""

    story: Story
    first: ProgramEvent
    last: ProgramEvent

    @cached_property
    def events(self) -> tuple[ProgramEvent, ...]:
        within = self.story.index.between(self.first.order, self.last.order)
        known: dict[object, bool] = {}  # many events stand under the same conditions
        for event in within:
            under = id(event.guards), id(event.turns)
            if under not in known:
                known[under] = self._is_on_the_way(event)
        return tuple(e for e in within if known[id(e.guards), id(e.turns)])

    def _is_on_the_way(self, event: ProgramEvent) -> bool:
        return not excludes(event, self.last) and not excludes(event, self.first)

    def does(self, *kinds: Do) -> list[Deed]:
        done = self.story.does(*kinds)
        start = bisect_right(done, self.first.order, key=_order)
        within = done[start : bisect_left(done, self.last.order, key=_order)]
        return [d for d in within if self._is_on_the_way(d.event)]


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
    yield from story.recall(_updates)


def _updates(story: Story) -> list[Update]:
    return list(_found_updates(story))


def _found_updates(story: Story) -> Iterator[Update]:
    done = story.does(*COMPUTES, Do.STEP)
    places = {id(deed): place for place, deed in enumerate(done)}
    for step in story.does(Do.STEP):
        for place in range(places[id(step)] - 1, -1, -1):
            deed = done[place]
            if excludes(deed.event, step.event):
                continue
            if deed.do is Do.BACKWARD and is_one_turn(deed.event, step.event):
                yield Update(story, step, deed)
            if deed.do is not Do.STEP or deed.subject is step.subject:
                break


def is_discarded(story: Story, backward: Deed) -> bool:
    """Tell whether the gradients of a backward pass are cleared before anything applies them.

    So are those of a saliency map, or of a look at the sharpness: they train nothing.
    """
    for deed in story.does(*UPDATES, Do.ZERO_GRAD):
        is_later = deed.event.order > backward.event.order
        if is_later and not excludes(deed.event, backward.event):
            is_sure = happens_with(deed.event, backward.event)
            return deed.do is Do.ZERO_GRAD and is_sure and is_one_turn(deed.event, backward.event)
    return False


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
    clears_itself = any(d.event.by_framework for d in story.does(Do.ZERO_GRAD))
    for deed in story.does(Do.BACKWARD):
        if deed.event.by_framework and clears_itself:
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
        if len(over.args) == 1 and one_number(story, over.args[0]) and _draws_batches(story, loop):
            return True
        bound = [v for a in over.args for v in origins(a, 20)]
        return any(ACCUMULATES.search(n) for v in bound for n in names_of(v))
    is_some = isinstance(over, Items) or any(
        isinstance(v, Result) and v.maker.rsplit(".", 1)[-1] in GROUPS for v in origins(over, 50)
    )
    return is_some and any(story.kind_of(v).kind is Kind.LOADER for v in origins(over, 50))


def _draws_batches(story: Story, loop: LoopRun) -> bool:
    """Tell whether each turn of a loop takes the next batch of one loader that others go on with.

    A loop that makes the iterator anew goes over all batches itself.
    """
    drawn = [e for e in story.recall(_draws) if e.args and e.loops[-1:] == (loop,)]
    iterators = [v for e in drawn for v in origins(e.args[0], 10)]
    made = {id(e.result) for e in story.recall(_iterators) if loop in e.loops}
    is_loader = any(story.kind_of(v).kind is Kind.LOADER for v in iterators)
    return len(loop_turns(drawn)) > 1 and is_loader and not any(id(v) in made for v in iterators)


def _draws(story: Story) -> list[ProgramEvent]:
    return [e for e in story.events if e.name == "builtins.next"]


def _iterators(story: Story) -> list[ProgramEvent]:
    return [e for e in story.events if e.name == "builtins.iter"]


def loop_turns(events: Iterable[ProgramEvent]) -> set[int]:
    """The turns of the innermost loop in which events happen."""
    return {e.turns[-1].number for e in events if e.turns}


@dataclass(frozen=True, slots=True, eq=False)
class IgnoredAccumulation:
    """An engine that is told to accumulate, and a step at every batch beside it."""

    engine: Value
    step: Deed
    is_asked: bool  # the loop runs under `accumulate()`, with an optimizer that is not prepared


def ignored_accumulation(story: Story) -> Iterator[IgnoredAccumulation]:
    """Yield the engines that are told to accumulate, and the steps at every batch beside them.

    Only `accumulate()` leaves steps out, and only those of an optimizer that was prepared; else
    each batch is applied by itself.
    """
    for engine in story.made(Kind.ENGINE):
        given = engine.kwargs.get("gradient_accumulation_steps") if _is_plain(engine) else None
        number = one_number(story, given)
        if number is None or number <= 1 or story.escapes(engine) is not Answer.NO:
            continue
        asks = story.index.on(engine)
        accumulates = any(e.name in (".accumulate", ".no_sync") for e in asks)
        prepared = [v for e in asks if e.name in PREPARES for v in (*e.args, *e.kwargs.values())]
        for update in updates(story):
            event = update.step.event
            is_counted = any(_counts(g.test) for g in event.guards if g.test is not None)
            is_left_out = accumulates and _may_hold(prepared, update.optimizer)
            if update.backward.through is engine and not is_counted and not is_left_out:
                yield IgnoredAccumulation(engine, update.step, accumulates)


PREPARES = (".prepare", ".prepare_optimizer")


def _may_hold(given: Iterable[Value], optimizer: Value | None) -> bool:
    """Tell whether an optimizer may be among what an engine is given to prepare."""
    if not isinstance(optimizer, Result) or not optimizer.maker.startswith("torch.optim."):
        return True
    return any(
        v is optimizer or getattr(v, "maker", "") == SPREAD
        for value in given
        for v in options_of(value)
    )


def _is_plain(engine: Value) -> TypeGuard[Result]:
    return isinstance(engine, Result) and engine.maker.endswith("Accelerator")


def _counts(test: Value) -> bool:
    """Tell whether a condition counts batches, as whoever accumulates by hand does."""
    found = list(origins(test, 30))
    if any(isinstance(v, Part) and v.key == "sync_gradients" for v in found):
        return True
    makers = (v.maker for v in found if isinstance(v, Result))
    return any(maker in ("operator.mod", "operator.eq", "operator.ge") for maker in makers)


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
    return step.through is None and any(not isinstance(g, CLOSURES) for g in given)


def writes_gradients(story: Story, events: Iterable[ProgramEvent]) -> bool:
    """Tell whether gradients are written by hand: `p.grad = g`, `p.grad.copy_(g)`."""
    deeds = {id(d.event) for d in story.deeds}
    for event in events:
        if id(event) in deeds:
            continue
        if event.act is EventForm.STORE:
            if event.name == "grad" and not isinstance(event.args[0], Known):
                return True
            if event.name == "[]" and is_gradient(event.receiver):
                return True
        elif is_in_place(event.name) and event.name not in SAME_NUMBERS:
            changed = event.receiver if event.receiver is not None else next(iter(event.args), None)
            if is_gradient(changed):
                return True
    return False


def is_handed_on(story: Story, events: Iterable[ProgramEvent], *values: Value | None) -> bool:
    """Tell whether something out of sight gets an optimizer or model, or what they hold."""
    held = [v for v in values if v is not None]
    held += [m for v in held for m, _ in holders(parameters_given(v))]
    wanted = {id(v) for v in held}
    given = {id(e) for v in held for e in story.index.given(v)}
    for event in events:
        if event.is_own or event.act is EventForm.STORE or story.is_harmless(event):
            continue
        arguments = (*event.args, *event.kwargs.values())
        if id(event) in given or any(wanted & _models_in(story, a) for a in arguments):
            return True
    return False


def _models_in(story: Story, value: Value) -> frozenset[int]:
    """The models whose parameters an argument holds."""
    known = story.recall(_known_models)
    if id(value) not in known:
        known[id(value)] = frozenset(id(model) for model, _ in holders(value))
    return known[id(value)]


def _known_models(story: Story) -> dict[int, frozenset[int]]:
    return {}


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
        is_cleared = any(
            _may_clear(d, update, story) for d in cleared if not is_once(d.event)
        ) and not _leaves_some(story, cleared, update.subject)
        later = None if is_cleared else _repeated(repeated, update)
        if later is not None and not _is_cleared_for(repeated, update, later):
            return update
    return None


def _is_cleared_for(repeated: Repetition, update: Deed, later: Deed) -> bool:
    """Tell whether an optimizer of several that a loop goes through is cleared before it is on."""
    if not repeated.loop.is_whole:
        return False
    window = UpdateWindow(repeated.story, update.event, later.event)
    return any(_may_clear(d, update, repeated.story) for d in window.does(Do.ZERO_GRAD))


def is_once(event: ProgramEvent) -> bool:
    """Tell whether an event happens in one turn of its loop only: `if i == 0`."""
    return any(
        g.holds and isinstance(g.test, Result) and g.test.maker == "operator.eq"
        and _is_running_number(g.test.args[0]) and isinstance(constant(g.test.args[1]), int)
        for g in event.guards
    )  # fmt: skip


def _is_running_number(value: Value) -> bool:
    """Tell whether a value counts the turns of a loop: of `enumerate`, of a `range`."""
    over = value.args[0] if isinstance(value, Result) and value.args else None
    is_drawn = isinstance(value, Result) and value.maker == "builtins.next"
    return is_drawn and isinstance(over, Result) and over.maker == "builtins.range"


def _leaves_some(story: Story, cleared: Iterable[Deed], optimizer: Value) -> bool:
    """Tell whether only a part of what an optimizer holds is cleared, and the rest is trained."""
    subjects = [d.subject for d in cleared]
    if any(v is None or story.kind_of(v).kind is Kind.OPTIMIZER for v in subjects):
        return False
    parts = [model_of(v) or v for v in subjects]
    models = [m for m, _ in holders(parameters_given(optimizer))]
    if not models or not all(is_module(v) for v in (*parts, *models)):
        return False
    done = {id(p) for part in parts if part is not None for p in registered(part)}
    held = [p for model in models for p in registered(model) if has_parameters(p)]
    left = [p for p in held if id(p) not in done]
    return bool(left) and len(left) < len(held) and all(
        is_ever_frozen(story, p) is Answer.NO for p in left
    )  # fmt: skip


def _may_clear(zero: Deed, update: Deed, story: Story) -> bool:
    """Tell whether a call may clear the gradients of an update: of one of many weights, any may."""
    weight = update.subject
    is_one_of_many = update.do is Do.MANUAL_UPDATE and not is_made_tensor(changed_tensor(weight))
    return is_one_of_many or weight is None or clears(zero, weight, story) is not Answer.NO


def is_made_tensor(value: Value | None) -> bool:
    """Tell whether a tensor is made in sight by itself, not drawn from those of a model."""
    return isinstance(value, Result) and value.maker.startswith("torch.")


def _is_plain_step(story: Story, step: Deed) -> bool:
    """Tell whether a step is certain to leave the gradients as they are."""
    optimizer = step.subject
    if optimizer is None or not is_trusted(story, optimizer) or has_closure(step):
        return False
    return is_made(optimizer) or not any(s.does(Do.ZERO_GRAD) for s in story.program.stories)


def _repeated(repeated: Repetition, update: Deed) -> Deed | None:
    """Return the update of the same optimizer, or the same weight, after the next pass."""
    tensor = changed_tensor(update.subject)
    for later in repeated.story.does(update.do):
        other = changed_tensor(later.subject)
        is_alike = other is tensor or (
            other is not None and tensor is not None and is_same(other, tensor, by_turn=True)
        )
        is_later = later.event.order > repeated.second.event.order
        if is_alike and is_later and later.event.node is update.event.node:
            return later
    return None


def updates_on_old_gradients(story: Story) -> Iterator[tuple[Repetition, Deed]]:
    """Yield the updates that the next one follows without any clearing in between."""
    for repeated in repetitions(story):
        update = _update_on_old_gradients(repeated)
        if update is not None:
            yield repeated, update
