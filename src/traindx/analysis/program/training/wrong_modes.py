"""Training in evaluation mode, and evaluation in training mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Answer, SuperValue, Value, constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import insert_after, insert_before, surround
from traindx.analysis.program.training.freezing import switches
from traindx.analysis.program.training.modes import (
    excludes,
    is_made_in_sight,
    is_mode_sure,
    last_mode,
    may_be_evaluating,
    mode_dependent,
    varies,
)
from traindx.analysis.program.training.ownership import trains
from traindx.analysis.program.training.phases import (
    HeldOutPass,
    evaluations,
    handed_models,
    training_passes,
)
from traindx.analysis.program.training.updates import is_discarded

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


@dataclass(frozen=True, eq=False)
class EvalModeTraining:
    """A training pass in evaluation mode, and what set it; none where the model was loaded so."""

    story: Story
    event: ProgramEvent
    model: Value
    layers: list[str]  # of it that mind the mode
    setting: Deed | None

    @property
    def name(self) -> str:
        return self.model.called("the model") if self.setting is None else self.setting.text

    def patch(self) -> str | None:
        """Return the patch that sets training mode before the loop over batches."""
        batches = self.event.loops[-1]
        if self.setting is None:
            is_named = bool(self.model.names)
            return insert_before(batches.site, f"{self.name}.train()") if is_named else None
        # where validation interrupts the passes over batches, a line before them changes nothing
        subject = self.setting.subject
        settings = [d for d in self.story.does(Do.EVAL_MODE) if d.subject is subject]
        is_inside = any(batches.site.node in _nodes(d.event) for d in settings)
        return None if is_inside else insert_before(batches.site, f"{self.name}.train()")


def training_in_eval_mode(story: Story) -> Iterator[EvalModeTraining]:
    """Yield the training passes of a story in evaluation mode, each place once."""
    seen: set[object] = set()
    for event, backward in training_passes(story):
        if is_discarded(story, backward):
            continue
        for model, mode in _models(story, event):
            layers = mode_dependent(story, model)
            if layers and event.node not in seen and _is_as_loaded(story, event, model, mode):
                seen.add(event.node)
                yield EvalModeTraining(story, event, model, layers, None)
            setting = _left_in_eval(story, event, model, mode)
            if setting is None or event.node in seen or setting.event.node in seen:
                continue
            is_shared = bool(set(_nodes(event)) & set(_nodes(setting.event)))
            if layers or (is_shared and not is_made_in_sight(model)):
                seen |= {event.node, setting.event.node}
                yield EvalModeTraining(story, event, model, layers, setting)


@dataclass(frozen=True, eq=False)
class PartInEvalMode:
    """A part of a model that trains in evaluation mode, which was set for a pass before."""

    part: Value
    layers: list[str]  # of it that mind the mode
    setting: Deed
    earlier: ProgramEvent  # the pass that the mode was set for
    event: ProgramEvent  # the pass in training

    def patch(self) -> str | None:
        """Return the patch that goes back to training mode behind the earlier pass."""
        is_last = isinstance(self.earlier.statement, ast.Return)
        is_far = self.earlier.function is not self.setting.event.function
        text = f"{self.setting.text}.train()"
        return None if is_last or is_far else insert_after(self.earlier, text)


def parts_in_eval_mode(story: Story) -> Iterator[PartInEvalMode]:
    """Yield the parts of a model in training that an earlier pass left in evaluation mode.

    A part that is put into evaluation mode and not run then is meant to train so.
    """
    seen: set[object] = set()
    steps = [d.subject for d in story.does(Do.STEP) if d.subject is not None]
    for event in _inner_passes(story):
        part = event.receiver
        setting = None if part is None else last_mode(story, part, event)
        is_own = setting is not None and setting.subject is part  # and not of what it stands in
        if part is None or setting is None or not is_own or setting.event.node in seen:
            continue
        earlier = _pass_between(story, setting.event, event, part)
        layers = mode_dependent(story, part)
        is_left = earlier is not None and layers and any(trains(s, part) for s in steps)
        if earlier is None or not is_left or _is_meant(story, part, setting, event):
            continue
        seen.add(setting.event.node)
        yield PartInEvalMode(part, layers, setting, earlier, event)


def _inner_passes(story: Story) -> Iterator[ProgramEvent]:
    """The calls of parts in evaluation mode inside of training passes of the whole in training."""
    whole = {
        (id(event.receiver), event.turns)
        for event, _ in training_passes(story)
        if event.is_training is Answer.YES
    }
    for event in story.events if whole else ():
        is_left = event.mode is not None and constant(event.mode) is False
        if is_left and event.within and (id(event.within[0]), event.turns) in whole:
            yield event


def _pass_between(
    story: Story, setting: ProgramEvent, event: ProgramEvent, part: Value
) -> ProgramEvent | None:
    """The last pass of a part without gradients after its mode was set, outside of training."""
    found = [
        d.event
        for d in story.does(Do.FORWARD)
        if d.event.receiver is part and setting.order < d.event.order < event.order
    ]
    apart = [e for e in found if not set(_nodes(e)) & set(_nodes(event))]
    is_apart = len(apart) == len(found) and all(e.gradients is Answer.NO for e in apart)
    return apart[-1] if apart and is_apart else None


def _models(story: Story, event: ProgramEvent) -> list[tuple[Value, Value]]:
    """The models that run in a call, with the modes that they are in."""
    own = [] if event.mode is None or event.receiver is None else [(event.receiver, event.mode)]
    return own or handed_models(story, event)


def _nodes(event: ProgramEvent) -> list[object]:
    return [loop.site.node for loop in event.loops]


def _left_in_eval(story: Story, event: ProgramEvent, model: Value, mode: Value) -> Deed | None:
    """What put a model that an optimizer trains into evaluation mode before a pass."""
    steps = [d.subject for d in story.does(Do.STEP) if d.subject is not None]
    if not may_be_evaluating(mode) or not any(trains(s, model) for s in steps):
        return None
    setting = last_mode(story, model, event)
    if setting is None or excludes(setting.event, event) or _is_meant(story, model, setting, event):
        return None
    if constant(mode) is not False:  # on some path: every so many steps, not by a setting
        own = [g for g in setting.event.guards if g not in event.guards]
        if not own or not all(varies(g) for g in own):
            return None
    others = story.handed_on(model, after=setting.event, before=event)
    is_handed_on = any(e.node is not event.node and e.name != event.name for e in others)
    return None if is_handed_on else setting


def _is_meant(story: Story, model: Value, setting: Deed, event: ProgramEvent) -> bool:
    """Tell whether most of a model is frozen as it is, or modes are written back by hand."""
    is_frozen = any(s.model is model and s.is_on is False and s.is_whole for s in switches(story))
    between = (e for e in story.events if setting.event.order < e.order < event.order)
    return is_frozen or any(e.act is EventForm.STORE and e.name == "training" for e in between)


def _is_as_loaded(story: Story, event: ProgramEvent, model: Value, mode: Value) -> bool:
    """Tell whether a model trains in the evaluation mode in which a library has loaded it."""
    is_loaded = constant(mode) is False and last_mode(story, model, event) is None
    return is_loaded and story.escapes(model, before=event) is Answer.NO and model.site is not None


@dataclass(frozen=True, eq=False)
class TrainModeEvaluation:
    """An evaluation that runs a model in training mode, and what set it last."""

    evaluation: HeldOutPass
    forward: Deed
    layers: list[str]  # of the model that mind the mode
    mode: Deed | None

    @property
    def place(self) -> Deed:
        """Where it goes wrong: the class of the model, if its own `train` undoes `eval`."""
        return self.mode if self.mode is not None and self._is_by_class else self.forward

    @property
    def _is_by_class(self) -> bool:
        return self.mode is not None and isinstance(self.mode.subject, SuperValue)

    def patch(self) -> str | None:
        """Return the patch that evaluates in evaluation mode, and goes on in training mode."""
        name, story = self.forward.text, self.evaluation.story
        modes = story.does(Do.TRAIN_MODE)
        is_set_again = any(d.subject is self.forward.subject and d.event.loops for d in modes)
        after = "" if is_set_again else f"{name}.train()"
        return (
            None if self._is_by_class else surround(self.evaluation.site, f"{name}.eval()", after)
        )


def evaluation_in_train_mode(story: Story) -> Iterator[TrainModeEvaluation]:
    """Yield the evaluations of a story that run a model in training mode, and do not mean to."""
    for evaluation in evaluations(story):
        forward, model = evaluation.passes[0], evaluation.forward.subject
        if any(d.event.is_training is not Answer.YES for d in evaluation.passes):
            continue
        if model is None or not is_mode_sure(story, model, forward.event):
            continue
        layers = mode_dependent(story, model)
        if layers and not evaluation.is_sampled and not _sets_mode(evaluation, forward):
            mode = last_mode(story, forward.subject, forward.event)
            yield TrainModeEvaluation(evaluation, forward, layers, mode)


def _sets_mode(evaluation: HeldOutPass, forward: Deed) -> bool:
    """Tell whether the evaluation itself sets the training mode that it runs in."""
    mode = last_mode(evaluation.story, forward.subject, forward.event)
    if mode is None or mode.event.by_framework or mode.event.function is not forward.event.function:
        return False
    if _also_trains(evaluation, mode):
        return False
    return not evaluation.learns or (evaluation.loop is not None and evaluation.loop.holds(mode))


def _also_trains(evaluation: HeldOutPass, mode: Deed) -> bool:
    """Tell whether training comes by the same line: a helper of both, which undoes `eval()`."""
    forward = evaluation.forward
    passes = (event for event, _ in training_passes(evaluation.story))
    is_shared = any(event.node is forward.event.node for event in passes)
    return is_shared and any(
        d.subject is forward.subject and d.event.function is not mode.event.function
        for d in evaluation.story.does(Do.EVAL_MODE)
    )
