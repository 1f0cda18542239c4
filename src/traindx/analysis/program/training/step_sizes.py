"""How far a step moves the weights: the groups of an optimizer, their rates, and clipping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Result,
    Table,
    Value,
    constant,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.ownership import holders, optimizers_of, parameters_given
from traindx.analysis.program.training.schedules import schedules_of
from traindx.analysis.program.training.settings import is_zero, one_number
from traindx.analysis.program.training.updates import updates

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MOVED = 2e-4  # of the norm of all weights in one step: a layer's, some units, needs 10,000 steps
EACH = 2e-6  # of each weight in one step; weights are some hundredths
TIGHT = 0.02  # a larger bound is usual, whatever the rate
VANISHING = 1e-6  # below it even an optimizer that divides by the gradients' size has its epsilon

# the learning rate where none is given
RATES = {"Adam": 1e-3, "AdamW": 1e-3, "SGD": 1e-3, "RMSprop": 1e-2, "NAdam": 2e-3, "RAdam": 1e-3,
         "Adagrad": 1e-2, "Adamax": 2e-3}  # fmt: skip
# that divide a gradient by its own size, so that a step is as large as the rate
ADAPTIVE = frozenset({*RATES, "Adafactor", "Lion", "LAMB", "Lamb"}) - {"SGD"}
POSITIONS = {"lr": 1, "momentum": 2}  # of the settings of an optimizer, after its parameters


def is_adaptive(optimizer: Value) -> bool:
    """Tell whether an optimizer makes steps whose size the gradients' does not decide."""
    return isinstance(optimizer, Result) and optimizer.maker.rsplit(".", 1)[-1] in ADAPTIVE


@dataclass(frozen=True, eq=False)
class ParameterGroup:
    """Parameters of an optimizer of torch's, with the settings that are theirs alone."""

    story: Story
    optimizer: Result
    parameters: Value | None
    own: Table | None = None

    @property
    def kind(self) -> str:
        return self.optimizer.maker.rsplit(".", 1)[-1]

    def given(self, name: str) -> Value | None:
        """Return a setting of the group, or of its optimizer."""
        if self.own is not None and name in self.own.fields:
            return self.own.fields[name]
        made, position = self.optimizer, POSITIONS.get(name, len(self.optimizer.args))
        return made.kwargs.get(name) or next(iter(made.args[position : position + 1]), None)

    @property
    def rate(self) -> float | None:
        """The learning rate that the group begins with."""
        given = self.given("lr")
        return RATES.get(self.kind) if given is None else one_number(self.story, given)

    @property
    def momentum(self) -> float | None:
        """The share of the last step that the next one takes along, of plain descent."""
        given = self.given("momentum") if self.kind in ("SGD", "RMSprop") else None
        return 0.0 if given is None else one_number(self.story, given)

    @property
    def has_own_rate(self) -> bool:
        return self.own is not None and "lr" in self.own.fields


def groups_of(story: Story) -> Iterator[ParameterGroup]:
    """Yield the groups of parameters of the optimizers of torch that a story makes or steps."""
    for optimizer in optimizers_of(story):
        if not isinstance(optimizer, Result) or "**" in optimizer.kwargs:
            continue
        if not optimizer.maker.startswith("torch.optim."):
            continue
        given = parameters_given(optimizer)
        tables = given.members if isinstance(given, Items) else []
        own = [t for t in tables if isinstance(t, Table)]
        for table in own:
            yield ParameterGroup(story, optimizer, table.fields.get("params"), table)
        if not own:
            yield ParameterGroup(story, optimizer, given)


def keeps_rate(
    story: Story, optimizer: Result, *, also_scaled: bool = False, also_written: bool = False
) -> bool:
    """Tell whether the rates of an optimizer certainly stay what it was made with.

    With `also_scaled`, schedules that only multiply it may do so; with `also_written`, the program
    may write other rates by hand.
    """
    given = parameters_given(optimizer)
    groups = given.members if isinstance(given, Items) else [] if given is None else [given]
    tables = [o for group in groups for o in options_of(group) if isinstance(o, Table)]
    if any(not t.is_whole for t in tables) or not list(holders(given)):
        return False
    if isinstance(given, Items) and not given.is_whole:
        return False
    schedules = (s for s in schedules_of(story) if s.optimizer is optimizer)
    if any(not (also_scaled and s.only_scales) for s in schedules):
        return False
    return (
        not any(d.subject is optimizer for d in story.does(Do.LOAD_STATE))
        and story.escapes(optimizer) is Answer.NO
        and (also_written or not any(writes_settings(e, optimizer) for e in story.events))
    )


def stays_zero(story: Story, optimizer: Result) -> bool:
    """Tell whether rates of zero stay so: nothing writes another, and a product is zero, too."""
    if keeps_rate(story, optimizer, also_scaled=True):
        return True
    writes = [e for e in story.events if writes_settings(e, optimizer)]
    is_written = bool(writes) and all(
        e.act is EventForm.STORE and e.name == "[]" and len(e.args) > 1
        and constant(e.args[1]) == "lr" and is_zero(story, e.args[0]) for e in writes
    )  # fmt: skip
    return is_written and keeps_rate(story, optimizer, also_scaled=True, also_written=True)


def writes_settings(event: ProgramEvent, optimizer: Value) -> bool:
    """Tell whether a store, or an update of a group, goes into an optimizer."""
    if event.receiver is None or (event.act is not EventForm.STORE and event.name != ".update"):
        return False
    return any(v is optimizer for v in origins(event.receiver, 50))


@dataclass(frozen=True, eq=False)
class ClipBound:
    """The size that gradients are cut to before a step, of all together or of each number."""

    clip: Deed
    step: Deed
    number: float
    is_norm: bool


def clip_bounds(story: Story) -> Iterator[ClipBound]:
    """Yield what gradients are clipped to between a backward pass and the step that uses them."""
    for update in updates(story):
        for clip in update.between.does(Do.CLIP):
            event = clip.event
            is_norm = "norm" in event.name
            given = _bound_given(event)
            number = one_number(story, given)
            is_asked = given is not None and any(
                g.test is not None and any(v is given for v in origins(g.test, 30))
                for g in event.guards
            )
            if number is not None and not is_asked:
                yield ClipBound(clip, update.step, abs(number), is_norm)


def _bound_given(event: ProgramEvent) -> Value | None:
    """The bound of a clip; of a clamp of gradients, its upper one."""
    if event.name.endswith(("clamp_", "clip_")):
        return event.argument("max", 1)
    given = event.argument("max_norm", 1)
    return event.argument("clip_value", 1) if given is None else given


def tight_clips(story: Story) -> list[ClipBound]:
    """Return the clips whose bound is so small that no step moves the weights."""
    return [bound for bound in clip_bounds(story) if _is_tight(story, bound)]


def _is_tight(story: Story, bound: ClipBound) -> bool:
    optimizer = bound.step.subject
    if bound.number == 0:
        return True
    if not isinstance(optimizer, Result) or not optimizer.maker.startswith("torch.optim."):
        return False
    if is_adaptive(optimizer):
        return bound.number <= VANISHING
    reach = [_reach(group) for group in groups_of(story) if group.optimizer is optimizer]
    moved = bound.number * max(reach, default=10.0)
    return bound.number < TIGHT and moved < (MOVED if bound.is_norm else EACH)


def _reach(group: ParameterGroup) -> float:
    """How far a step goes for a gradient of one; what is not known is taken to be large."""
    rate, momentum = group.rate, group.momentum
    kept = 0.9 if momentum is None or momentum >= 1 else momentum
    return (1.0 if rate is None else rate) / (1 - kept)
