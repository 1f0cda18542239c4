"""Putting a peer's lines into a training program, where its documentation wants them.

One line after optimizer, model and schedule are made, ahead of the loop, and one after each
optimizer step. Which name holds the model is looked up in the program without the fault: it
is the one that its author would have given to the peer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.corpus import anatomy
from bench.corpus.source import Edit, Source, apply
from bench.corpus.syntax import dotted, method_statements, targets

WATCH = '__import__("peer_watch")'


class NotApplicable(Exception):
    """A peer cannot be put in place, and why."""


@dataclass(frozen=True, slots=True)
class Original:
    """What the program without the fault tells: models by optimizer, losses, and the task."""

    models: Mapping[str, str]
    losses: tuple[str, ...]
    is_classifier: bool


def inserted(files: Mapping[str, str], original: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a program with the peer's lines in them."""
    known = _known(original)
    changed, places, steps = dict(files), 0, 0
    for path, text in sorted(files.items()):
        if not path.endswith(".py"):
            continue
        source = Source(path, text)
        attaching = list(_attaching(source, known, places))
        stepping = list(_stepping(source, known))
        places, steps = places + len(attaching), steps + len(stepping)
        if attaching or stepping:
            edits = [*attaching, *stepping]
            changed[path], _ = apply(source, edits, edits[0])
    if not places:
        raise NotApplicable("no optimizer with a model found in the source")
    if not steps:
        raise NotApplicable("no training step found in the source")
    return changed


def tracked_models(original: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that hold the models of a program, by the optimizers it makes."""
    found = dict.fromkeys(_known(original).models.values())
    return tuple(name for name in found if name.isidentifier())


def _known(original: Mapping[str, str]) -> Original:
    models: dict[str, str] = {}
    losses: list[str] = []
    kinds: set[str] = set()
    for path, text in sorted(original.items()):
        if not path.endswith(".py"):
            continue
        source = Source(path, text)
        for optimizer in anatomy.optimizers(source):
            if model := _model(source, optimizer):
                models[optimizer.name] = model
        for step in anatomy.loop_steps(source):
            losses.append(step.loss)
            kinds |= {loss.kind for loss in anatomy.losses(source, step)}
    is_classifier = kinds == {"classes"} and len(models) == 1
    return Original(models, tuple(dict.fromkeys(losses)), is_classifier)


def _model(source: Source, optimizer: anatomy.Optimizer) -> str:
    """Return the model whose parameters an optimizer is given, however they are wrapped."""
    if optimizer.model:
        return optimizer.model
    for node in ast.walk(optimizer.call):
        if isinstance(node, ast.Attribute) and node.attr.endswith("parameters"):
            return dotted(node.value)
    return next(iter(anatomy.model_names(source)), "")


def _attaching(source: Source, known: Original, first: int) -> Iterator[Edit]:
    for place, optimizer in enumerate(anatomy.optimizers(source), start=first):
        model = known.models.get(optimizer.name) or _model(source, optimizer)
        if not model:
            continue
        more = f"{place}, {known.is_classifier}"
        made = _last_making(source, optimizer.statement, model)
        if getattr(optimizer.statement, "value", None) is optimizer.call and optimizer.name:
            yield source.after(made, f"{WATCH}.attach({model}, {optimizer.name}, {more})")
            continue
        is_end = isinstance(optimizer.statement, ast.Return)
        before = f"{WATCH}.{'attach' if is_end else 'hold'}({model}, "
        yield source.wrap(optimizer.call, before, f", {more})")
        if not is_end:
            yield source.after(made, f"{WATCH}.attach_held()")


def _last_making(source: Source, statement: ast.stmt, model: str) -> ast.stmt:
    """Return the statement ahead of the loop after which optimizer, schedule and model are made.

    A peer that replaces `optimizer.step` wants to come after the schedule, which does so too.
    """
    block = source.siblings(statement)
    last = statement
    for later in block[block.index(statement) + 1 :]:
        if isinstance(later, ast.For | ast.While):
            break
        made = {
            dotted(t)
            for node in ast.walk(later)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for t in [*targets(node), node.value.func]
        }
        if model in made or any(anatomy.is_schedule(x) or x.endswith("LR") for x in made):
            last = later
    return last


def _stepping(source: Source, known: Original) -> Iterator[Edit]:
    updates = anatomy.updates(source)
    found: dict[ast.stmt, str] = {s.backward: s.loss for s in anatomy.loop_steps(source)}
    for statement, _, name in method_statements(source, "backward"):
        if name.isidentifier():  # the loss may be made in a block further out
            found.setdefault(statement, name)
    for backward, loss in found.items():
        after, owner = backward, ""
        block = source.siblings(backward)
        for sibling in block[block.index(backward) :]:
            inside = set(ast.walk(sibling))
            owners = [o for s, o in updates if s in inside]
            if owners:
                after, owner = sibling, owners[0]
                break
        yield source.after(after, _line(loss, owner))
    if found:
        return
    for update, owner in updates:  # nothing is propagated back: beside the update, then
        scope = source.scope(update)
        here = {dotted(t) for node in ast.walk(scope) for t in targets(node)}
        for loss in known.losses:
            if loss in here:
                yield source.after(update, _line(loss, owner))
                break


def _line(loss: str, optimizer: str) -> str:
    more = f", {optimizer}" if optimizer else ""
    return f'{WATCH}.after_step("{loss}", {loss}{more})'
