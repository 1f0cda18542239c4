"""What a training loop leaves out: the backward pass before a step, or the step after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.losses import carries, is_passed_on, losses
from traindx.analysis.program.training.ownership import left_out
from traindx.analysis.program.training.phases import Loop, training_loops
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.scaling import is_gradient_scaler
from traindx.analysis.program.training.updates import (
    COMPUTES,
    excludes,
    has_closure,
    is_made,
    is_trusted,
    writes_gradients,
)

UPDATES = (Do.STEP, Do.MANUAL_UPDATE, Do.GRAD)


@dataclass(frozen=True, slots=True, eq=False)
class BarrenStep:
    """A step in a loop that computes a loss and no gradients."""

    loop: Loop
    step: Deed
    loss: ProgramEvent

    @property
    def is_one_way(self) -> bool:
        """Whether another way through the loop computes gradients."""
        return bool(self.loop.does(*COMPUTES))

    @property
    def loss_name(self) -> str:
        """The name of the loss where the step can see it and it is not a part of a sum."""
        loss = self.loss.result
        if loss is None or self.loss.function is not self.step.event.function:
            return ""
        sums = (e for e in self.loop.events if e.name in ("operator.add", "operator.iadd"))
        return "" if any(carries(a, [loss]) for e in sums for a in e.args) else loss.called()


@dataclass(frozen=True, slots=True, eq=False)
class UnappliedBackward:
    """The last backward pass of a loop, and the optimizer that is not stepped on it."""

    loop: Loop
    backward: Deed
    optimizer: Value


def barren_steps(story: Story) -> Iterator[BarrenStep]:
    """Yield the steps of loops with a loss in which nothing computes gradients."""
    for loop in training_loops(story):
        step = _step_without_gradients(loop)
        found = [] if step is None else [e for e in losses(story, loop.events)
                                         if not excludes(e, step.event)]  # fmt: skip
        made = [e.result for e in found if e.result is not None]
        if step is not None and found and not is_passed_on(story, loop.events, made):
            yield BarrenStep(loop, step, found[0])


def unapplied_backwards(story: Story) -> Iterator[UnappliedBackward]:
    """Yield the backward passes of loops after which an optimizer that holds layers stays still."""
    for loop in training_loops(story):
        backward = loop.does(Do.BACKWARD)
        if not backward or story.reads_gradients(loop.events):
            continue
        is_updated = bool(loop.does(*UPDATES))
        optimizer = left_out(story, backward[-1]) if is_updated else _unstepped(loop)
        if optimizer is not None:
            yield UnappliedBackward(loop, backward[-1], optimizer)


def _step_without_gradients(loop: Loop) -> Deed | None:
    """The step of an optimizer in a loop where nothing computes or writes gradients."""
    story = loop.story
    computing = loop.does(*COMPUTES, Do.MANUAL_UPDATE)
    if writes_gradients(story, loop.events):
        return None
    for step in loop.does(Do.STEP):
        if not all(excludes(d.event, step.event) for d in computing):
            continue
        is_plain = step.through is None or is_gradient_scaler(story, step.through)
        if is_plain and not has_closure(step) and _is_known(story, step):
            return step
    return None


def _is_known(story: Story, step: Deed) -> bool:
    """Tell whether it is an optimizer; one out of sight may get its gradients in other code."""
    if step.subject is None or not is_trusted(story, step.subject):
        return False
    return is_made(step.subject) or not any(s.does(*COMPUTES) for s in story.program.stories)


def _unstepped(loop: Loop) -> Value | None:
    """The optimizer of a loop, where nothing in sight or out of it can step it."""
    story = loop.story
    cleared = [d.subject for d in loop.does(Do.ZERO_GRAD)]
    found = [v for v in cleared if v is not None and story.is_kind(v, Kind.OPTIMIZER)]
    made = story.made(Kind.OPTIMIZER)
    for optimizer in [*found, *(made if len(made) == 1 else [])]:
        stepped = any(d.subject is optimizer for d in story.does(Do.STEP))
        if not stepped and story.escapes(optimizer) is Answer.NO:
            return optimizer
    return None
