"""Prompts that a program means to leave out of the loss, and that come back into it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Result,
    Table,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

COLLATOR = "DataCollatorForLanguageModeling"
IGNORED = -100


@dataclass(frozen=True, slots=True, eq=False)
class PromptKept:
    """A place by which the prompt stays in the loss, and what was to leave it out."""

    at: Value | ProgramEvent
    says: str
    masked: Value | None = None


def prompts_kept(story: Story) -> Iterator[PromptKept]:
    """Yield where labels or masks that leave out the prompt have no effect."""
    yield from _overwritten(story)
    yield from _compared(story)
    yield from _unused_mask(story)


def _overwritten(story: Story) -> Iterator[PromptKept]:
    """A collator that makes labels anew, over a dataset that masks some."""
    for example in story.execution.examples:
        collator, row = _collator(example.loader), example.value
        labels = row.fields.get("labels") if isinstance(row, Table) else _mapped(story)
        if collator is None or labels is None:
            continue
        if any(map(_masks_first, origins(labels, 200))):
            yield PromptKept(collator, f"{COLLATOR} replaces the dataset's labels", labels)


def _mapped(story: Story) -> Value | None:
    """The labels that a function makes which a dataset is mapped with."""
    for event in story.events:
        made = event.result if event.is_own else None
        labels = made.fields.get("labels") if isinstance(made, Table) else None
        if labels is not None:
            return labels
    return None


def _collator(loader: Value) -> Result | None:
    """The collator of language modelling that a trainer or loader is given."""
    given = loader.kwargs if isinstance(loader, Result) else {}
    made = given.get("data_collator") or given.get("collate_fn")
    is_known = isinstance(made, Result) and made.maker.rsplit(".", 1)[-1] == COLLATOR
    if not is_known or not isinstance(made, Result):
        return None
    return made if constant(made.kwargs.get("mlm")) is False else None


def _masks_first(value: Value) -> bool:
    """`[-100] * len(prompt) + answer`: what stands before the answer, and no pads behind it."""
    operation = operation_of(value)
    if operation is None or operation.name != "add" or not operation.operands:
        return False
    return any(constant(v) == IGNORED for v in origins(operation.operands[0], 4))


def _compared(story: Story) -> Iterator[PromptKept]:
    """`labels[:n] == -100`, a comparison that nobody uses, where an assignment is meant."""
    every = [*story.events, *(e for x in story.execution.examples for e in x.events)]
    for event in every:
        is_test = event.name == "operator.eq" and any(constant(a) == IGNORED for a in event.args)
        statement = event.module.statement_of(event.node) if is_test else None
        if isinstance(statement, ast.Expr) and statement.value is event.node:
            yield PromptKept(event, "Labels are compared with -100, not set to it")


def _unused_mask(story: Story) -> Iterator[PromptKept]:
    """`[0] * len(prompt) + [1] * len(answer)`, which no loss depends on."""
    losses = [d.subject for d in story.does(Do.BACKWARD) if d.subject is not None]
    used = {id(v) for loss in losses for v in origins(loss)}
    of_tokens = any(_is_of_tokens(v) for loss in losses for v in origins(loss, 400))
    for event in story.events if losses and of_tokens else ():
        if event.name == "operator.add" and len(event.args) == 2 and id(event.result) not in used:
            first, second = (_repeated(v) for v in event.args)
            is_open = id(event.result) in story.recall(_returned)
            if first == 0 and second == 1 and not is_open and not _is_scored(story):
                yield PromptKept(event, "The mask of the answer is not used by the loss")


def _is_scored(story: Story) -> bool:
    """Tell whether tokens are scored where nothing is learnt: a mask may be meant for that."""
    return any(e.gradients is Answer.NO and e.name.endswith("cross_entropy") for e in story.events)


def _is_of_tokens(value: Value) -> bool:
    operation = operation_of(value)
    return operation is not None and operation.name == "cross_entropy"


def _repeated(value: Value) -> object:
    """The number that a list repeats: 0 of `[0] * n`."""
    if not isinstance(value, Result) or value.maker != "operator.mul":
        return None
    lists = [v for v in value.args if isinstance(v, Items) and len(v.members) == 1]
    return constant(lists[0].members[0]) if lists else None


def _returned(story: Story) -> set[int]:
    """What models, loaders and trainers out of sight are given by name."""
    given = [g for e in story.events if not e.is_own for g in e.kwargs.values()]
    return {id(v) for g in given for v in origins(g, 50)}
