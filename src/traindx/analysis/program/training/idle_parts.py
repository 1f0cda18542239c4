"""Held-out parts of data that nothing is done with, while the training part is scored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Items,
    Result,
    Table,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.phases import phase_word
from traindx.analysis.program.training.splits import Division, divisions

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MOST = 400  # values that are followed
NEAR = 40  # values that are made of a score
COMPARES = LOSSES | {"eq", "ne"}
# what makes the same data ready, and takes no look at them
READIES = (
    "torch.tensor",
    "torch.from_numpy",
    "torch.as_tensor",
    "torch.FloatTensor",
    "numpy.",
    "torch.LongTensor",
    "operator.",
    "builtins.",
    "torch.Tensor",
    "torch.utils.data.",
)
KEEPS = ("save", "dump", "to_csv", "to_parquet", "savez", "write")


@dataclass(frozen=True, eq=False)
class IdlePart:
    """A part for testing that is never used, and where the other part is scored instead."""

    division: Division
    score: ProgramEvent


def idle_parts(story: Story) -> Iterator[IdlePart]:
    """Yield the splits of which the second part is never used, and the first is evaluated."""
    for division in divisions(story):
        if not division.is_for_test or story.execution.gave_up:
            continue
        score = _scored(story, division)
        if score is not None and _learns_from(story, division.head) and _is_idle(story, division):
            yield IdlePart(division, score)


def _scored(story: Story, division: Division) -> ProgramEvent | None:
    """Where outputs for the first part are compared with what they should be, without learning."""
    for event in story.events:
        operation = operation_of(event.result) if event.gradients is Answer.NO else None
        if operation is None or operation.name not in COMPARES or event.is_own:
            continue
        passed = [v for o in operation.operands if _is_output(story, o) for v in origins(o)]
        if any(v is division.head for v in passed) and not _is_said_to_train(story, event):
            return event
    return None


def _is_said_to_train(story: Story, score: ProgramEvent) -> bool:
    """Tell whether a score goes by a name, or is printed with a text, that speaks of training."""
    made = [] if score.result is None else list(islice(story.flow.onward(score.result), NEAR))
    ids = {id(v) for v in made}
    printed = (e for e in story.events if any(id(v) in ids for v in e.args))
    texts = [t for e in printed for a in e.args for v in (a, *a.inputs)
             if isinstance(t := constant(v), str)]  # fmt: skip
    names = [n for v in made for n in names_of(v)]
    return any(phase_word(t) == "train" for t in (*texts, *names))


def _is_output(story: Story, value: Value) -> bool:
    """Tell whether something is computed with trained weights."""
    trained = {id(d.event.result) for d in story.does(Do.FORWARD)}
    return any(
        id(v) in trained or (isinstance(v, Result) and v.maker == ".requires_grad_")
        for v in origins(value)
    )


def _learns_from(story: Story, head: Value) -> bool:
    return any(
        d.subject is not None and any(v is head for v in origins(d.subject))
        for d in story.does(Do.BACKWARD)
    )


def _is_idle(story: Story, division: Division) -> bool:
    """Tell whether nothing but preparation is done with the second part."""
    reached = _reached(story, division.tail)
    for event in story.events:
        given = [*event.args, *event.kwargs.values()]
        given += [event.receiver] if event.receiver is not None else []
        given += [run.over for run in event.loops if run.over is not None]
        touched = [v for v in given if id(v) in reached]
        if touched and not _only_readies(event, touched):
            return False
    return True


def _only_readies(event: ProgramEvent, touched: list[Value]) -> bool:
    if any(isinstance(run.over, Value) and run.over in touched for run in event.loops):
        return False
    if event.act is EventForm.STORE or event.is_own:
        return True  # what is done inside of it comes as events of its own
    last = event.name.rsplit(".", 1)[-1]
    if any(word in last for word in KEEPS):
        return False
    operation = operation_of(event.result)
    if operation is not None and operation.name in COMPARES:
        return False
    return event.name.startswith((*READIES, ".")) and event.name not in (".score", ".predict")


def _reached(story: Story, part: Value) -> set[int]:
    """What is made of a part, in objects too; a collection of several parts is none of them."""
    holders: dict[int, list[Value]] = {}
    for event in story.events:
        for value in (event.receiver, event.result, *event.args):
            for held in value.fields.values() if isinstance(value, Instance) else ():
                holders.setdefault(id(held), []).append(value)  # type: ignore[arg-type]
    pending, seen = [part], {id(part)}
    while pending and len(seen) < MOST:
        here = pending.pop()
        for made in (*story.made_from(here), *holders.get(id(here), ())):
            is_several = isinstance(made, (Items, Table)) and len(made.fields) > 1
            if id(made) not in seen and not is_several:
                seen.add(id(made))
                pending.append(made)
    return seen
