"""Losses of an evaluation in which the model has no part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Part, Result, Value, depends_on
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.kinds import Kind, names_of, words_of
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.phases import Loop, loop_of
from traindx.analysis.program.training.program import Story

# words of the names of outputs, and of functions out of sight that may run a model
OUTPUT = frozenset(
    {"out", "output", "outputs", "pred", "preds", "prediction", "predictions", "logit", "logits",
     "score", "scores", "prob", "probs", "recon", "hat", "forward", "infer", "inference", "predict",
     "run", "step", "model", "net"}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class UnrunModel:
    """A loss of two parts of a batch, in a loop in which the model does not run."""

    loop: Loop
    loss: ProgramEvent
    mode: Deed  # puts the model into evaluation mode


def unrun_models(story: Story) -> Iterator[UnrunModel]:
    """Yield the losses of evaluations that are computed without the model."""
    modes = story.does(Do.EVAL_MODE)
    for event in story.events if modes else ():
        if not event.loops or not _is_loss(story, event):
            continue
        loop = loop_of(story, event.loops[-1], is_apart=True)
        own = [d for d in modes if d.event.function is loop.function is not None]
        if not own or loop.does(Do.FORWARD) or not _is_of_batch(event):
            continue
        models = [d.subject for d in own if d.subject is not None]
        if not any(_has_part(loop, event, model) for model in models):
            yield UnrunModel(loop, event, own[0])


def _is_loss(story: Story, event: ProgramEvent) -> bool:
    operation = operation_of(event.result)
    is_known = operation is not None and operation.name in LOSSES
    called = event.name == "()" and story.kind_of(event.receiver).kind is Kind.LOSS
    return (is_known or called) and len(event.args) == 2 and not event.is_own


def _is_of_batch(event: ProgramEvent) -> bool:
    """Tell whether a loss compares two parts of one batch that are not named as outputs."""
    parts = [a for a in event.args if isinstance(a, Part)]
    if len(parts) != 2 or parts[0].of is not parts[1].of or parts[0].key == parts[1].key:
        return False
    batch = parts[0].of
    is_drawn = isinstance(batch, Result) and batch.maker in ("builtins.next", "()")
    named = [n for v in parts for n in names_of(v)]
    if isinstance(batch, Result) and batch.receiver is not None:
        named += names_of(batch.receiver)
    return is_drawn and not any(words_of(n) & OUTPUT for n in named)


def _has_part(loop: Loop, loss: ProgramEvent, model: Value) -> bool:
    """Tell whether a model had its part in what a loss compares, or may run in the loop unseen."""
    compared = [*loss.args, *([] if loss.receiver is None else [loss.receiver])]
    if any(depends_on(value, model) for value in compared):
        return True
    given = (v for e in loop.events for v in (e.receiver, *e.args, *e.kwargs.values()))
    return any(v is not None and depends_on(v, model) for v in given)
