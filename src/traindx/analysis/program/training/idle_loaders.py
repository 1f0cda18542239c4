"""Held-out loaders that nothing reads, while a model is scored on its training data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.frameworks import is_trainer
from traindx.analysis.program.execution.values import Answer, Known, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.loaders import (
    is_held_out,
    is_idle,
    is_loader,
    named_loaders,
    same_data,
)
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.phases import LEARNS, Loop, loop_of, phase_word
from traindx.analysis.program.training.program import Story

EVALUATES = (".validate", ".test", ".evaluate")  # of a framework's trainer
COMPARES = LOSSES | {"eq", "ne", "item", "sub"}


@dataclass(frozen=True, eq=False)
class MisplacedScore:
    """A score on what a model was trained on, beside held-out data that nothing reads."""

    story: Story
    score: ProgramEvent
    trained: Value
    held_name: str
    held: Value

    @property
    def name(self) -> str:
        """How the training data are called."""
        names = (n for n in sorted(self.trained.names) if phase_word(n) == "train")
        return next(names, "the training data")

    @property
    def call(self) -> ProgramEvent | None:
        """The call that hands the data over, from the outside in; or the trainer's own."""
        nodes = [site.node for site in self.score.callers]
        events = self.story.events
        calls = (e for e in events if e is self.score or (e.is_own and e.node in nodes))
        return next((e for e in calls if self.trained in (*e.args, *e.kwargs.values())), None)


def idle_loader(story: Story) -> tuple[str, Value] | None:
    """The loader of held-out data that nothing reads."""
    for loaders in named_loaders(story):
        for name, loader in loaders.items():
            if is_held_out(name) and all(is_idle(s, loader) for s in story.program.stories):
                return name, loader
    return None


def scores_on_training_data(story: Story) -> Iterator[tuple[ProgramEvent, Value]]:
    """Where a model is scored on what it was trained on."""
    loops: dict[object, Loop] = {}
    for forward in story.does(Do.FORWARD):
        for run in forward.event.loops[-1:]:
            loops.setdefault((run.site.node, run.occasion), loop_of(story, run, is_apart=True))
    learning = [x.over for x in loops.values() if x.does(*LEARNS)]
    trained = [v for v in learning if v is not None and is_loader(v)]
    for loop in loops.values():
        if loop.does(*LEARNS) or not any(loop.over is v for v in trained):
            continue
        passes = [d for d in loop.does(Do.FORWARD) if not d.event.within]
        scored = next((d for d in passes if _is_scored(story, d)), None)
        if scored is not None and loop.over is not None:
            yield scored.event, loop.over
    for event in story.events:
        if event.name in EVALUATES and is_trainer(event.receiver):
            given = [v for v in (*event.args, *event.kwargs.values()) if v in trained]
            if given:
                yield event, given[0]


def misplaced_scores(story: Story) -> Iterator[MisplacedScore]:
    """Yield the scores on training data in whose place a held-out loader lies idle."""
    idle = idle_loader(story)
    for score, trained in scores_on_training_data(story) if idle is not None else ():
        if idle is not None:
            yield MisplacedScore(story, score, trained, *idle)


def trainers_on_one_set(story: Story) -> Iterator[ProgramEvent]:
    """Yield the trainers of a framework that evaluate on what they train on."""
    for event in story.events:
        train, held = event.kwargs.get("train_dataset"), event.kwargs.get("eval_dataset")
        if not isinstance(held, Known) and same_data(train, held):
            yield event


def _is_scored(story: Story, forward: Deed) -> bool:
    """Tell whether a pass evaluates: it does not learn, and its output is compared."""
    event = forward.event
    if Answer.NO not in (event.gradients, event.is_training) or event.result is None:
        return False
    pending, seen = [event.result], 0
    while pending and seen < 60:
        seen += 1
        for use in story.made_from(pending.pop()):
            operation = operation_of(use)
            if operation is not None and operation.name in COMPARES:
                return True
            pending.append(use)
    return False
