"""Augmentation that runs inside of the loops: on batches, by a module or function of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Instance,
    Items,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.data import is_draw, random_transform
from traindx.analysis.program.training.kinds import names_of, words_of
from traindx.analysis.program.training.modes import reads_mode
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.phases import WORDS, HeldOutPass, Loop, evaluations
from traindx.analysis.program.training.preprocessing import preprocessing_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

AUGMENTS = frozenset(
    {"augment", "augmentation", "augmentations", "augmenter", "augmentor", "aug", "augs", "jitter",
     "cutout", "mixup", "cutmix", "erasing", "erase", "specaugment", "randaugment"}
)  # fmt: skip
PHASE_WORDS = frozenset({"phase", "stage", "split", "mode", "is_train", "learn"}).union(
    *WORDS.values()
)

ON_PURPOSE = ("robust", "noise", "noisy", "corrupt", "attack", "advers", "tta", "perturb", "stress",
              "smooth", "sample")  # fmt: skip


@dataclass(frozen=True, eq=False)
class AugmentedEvaluation:
    """An evaluation whose inputs pass through augmentation."""

    evaluation: HeldOutPass
    call: ProgramEvent
    name: str


def augmented_evaluations(story: Story) -> Iterator[AugmentedEvaluation]:
    """Yield the evaluations whose inputs are changed at random by what is named for it."""
    for evaluation in evaluations(story):
        loop = evaluation.loop
        if loop is None or "tta" in words_of(evaluation.forward.event.function_name):
            continue
        given = evaluation.forward.event.args
        made = {id(v) for a in given for v in origins(a)}
        for event in loop.events:
            name = _augments(event)
            several = event.result.members if isinstance(event.result, Items) else [event.result]
            is_met = any(v is not None and id(v) in made for v in several)
            if name and is_met and _is_random(loop.events, event) and not is_for_training(event):
                yield AugmentedEvaluation(evaluation, event, name)
                break
        else:
            noise = _noise(story, evaluation, loop)
            if noise is not None:
                yield AugmentedEvaluation(evaluation, noise, "random noise")


def _noise(story: Story, evaluation: HeldOutPass, loop: Loop) -> ProgramEvent | None:
    """Return what adds noise to the input of an evaluation that judges classes.

    Where the noise has a part in what is wanted of the model, it is the task.
    """
    forward = evaluation.forward.event
    around = [forward.function_name, *(getattr(c.module.function_of(c.node), "name", "")
                                       for c in forward.callers)]  # fmt: skip
    if not forward.args or any(word in name.lower() for name in around for word in ON_PURPOSE):
        return None
    found = preprocessing_of(story, forward.args[0], into_dataset=False)
    noise = {id(v) for v in found.noise}
    added = [e for e in loop.events if id(e.result) in noise and not is_for_training(e)]
    return added[0] if added and found.is_known and _judges_classes(loop, forward, noise) else None


def _judges_classes(loop: Loop, forward: ProgramEvent, noise: set[int]) -> bool:
    """Tell whether an output is set against labels of the batch that no noise has a part in."""
    for event in loop.events:
        operation = operation_of(event.result)
        if operation is None or operation.name not in ("cross_entropy", "eq"):
            continue
        sides = [list(origins(v, 200)) for v in operation.operands[:2]]
        outputs = [any(v is forward.result for v in side) for side in sides]
        if outputs.count(True) == 1 and len(sides) == 2:
            wanted = sides[outputs.index(False)]
            return not any(id(v) in noise for v in wanted)
    return False


def _augments(event: ProgramEvent) -> str:
    """Return the name of the augmentation that is called; empty where it is none."""
    receiver = event.receiver
    if event.name == "()" and receiver is not None and random_transform(receiver):
        return next(iter(names_of(receiver)), "a random transform")
    if not event.is_own:
        return ""
    own = receiver.cls.node.name if isinstance(receiver, Instance) else event.name
    known = [own, *(names_of(receiver) if receiver is not None else [])]
    if any("tta" in words_of(n) for n in known):
        return ""
    return next((n for n in known if words_of(n) & AUGMENTS), "")


def _is_random(events: tuple[ProgramEvent, ...], call: ProgramEvent) -> bool:
    """Tell whether random numbers are drawn in a call."""
    if not call.is_own:
        return True
    inside = (e for e in events if e.order > call.order and call.site in e.callers)
    return any(e.result is not None and is_draw(e.result) for e in inside)


def is_for_training(event: ProgramEvent) -> bool:
    """Tell whether a condition on the mode or the phase stands before a call."""
    return any(
        g.test is None or reads_mode(g.test) or _speaks_of_phase(g.test) for g in event.guards
    )


def is_added_for_training(story: Story, transform: Value) -> bool:
    """Tell whether a transform is made, or put into a list, on a condition on the phase."""
    return any(
        is_for_training(event)
        for event in (*story.index.giving(transform), *story.index.taking(transform))
        if event.guards
    )


def _speaks_of_phase(test: Value) -> bool:
    known = list(origins(test, 40))
    names = [n for v in known for n in (*names_of(v), constant(v)) if isinstance(n, str)]
    return bool({w for n in names for w in words_of(n)} & PHASE_WORDS)
