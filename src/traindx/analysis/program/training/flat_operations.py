"""Operations without a slope that keep gradients from layers or from the whole model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.values import (
    Answer,
    Part,
    Result,
    Value,
    constant,
    depends_on,
)
from traindx.analysis.program.training.acts import Deed, Do, model_of
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.gradients import (
    Cut,
    cut_of,
    cuts_before,
    has_history,
    history,
    runs_behind,
    runs_reached,
    terms_of,
)
from traindx.analysis.program.training.operations import operation_name, operation_of
from traindx.analysis.program.training.ownership import owns
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.severance import flat_layers, lost_history

STEPS = frozenset({"sign", "sgn", "round", "floor", "ceil", "heaviside", "trunc"})


COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


def flat_steps(story: Story) -> Iterator[Value]:
    """Yield the operations without a slope between layers that an optimizer is meant to train."""
    yield from (cut for cut, _ in flat_layers(story) if isinstance(cut, (Result, Part)))
    losses = [d.subject for d in story.does(Do.BACKWARD) if d.subject is not None]
    for term in (t for loss in losses for t in terms_of(loss)):
        runs = runs_reached(term)
        reached = {id(r.receiver) for r in runs}
        for step in _steps(term):
            behind = runs_behind(step)
            layer = behind[0].receiver if behind else None
            if layer is None or id(layer) in reached:
                continue
            is_taken = any(depends_on(a, step) for r in runs for a in r.args)
            if is_taken and _is_trained(story, layer):
                yield step


def flat_losses(story: Story) -> Iterator[tuple[Deed, Value]]:
    """Yield the backward passes whose every way back goes through an operation without a slope."""
    for backward in story.does(Do.BACKWARD):
        if backward.subject is None:
            continue
        terms = [t for t in terms_of(backward.subject) if t is not backward.subject]
        lost = [lost_history(story, backward), *map(_lost, terms)]
        found = next((f for cuts in lost if (f := _flat(cuts))), None)
        if found is not None:
            yield backward, found


def _steps(loss: Value) -> Iterator[Result]:
    """The step functions at which the history of a loss ends, where a layer takes the result."""
    indices = {id(v) for u in history(loss) for v in _indices(u)}
    for how, cut in cuts_before(loss):
        is_step = isinstance(cut, Result) and operation_name(cut.maker) in STEPS
        if how is Cut.FLAT and is_step and id(cut) not in indices and isinstance(cut, Result):
            yield cut


def _indices(value: Value) -> tuple[Value, ...]:
    """What a value takes as an index: that has no slope by its nature."""
    operation = operation_of(value)
    if operation is None or operation.name not in ("embedding", "gather", "index_select"):
        return ()
    return operation.operands


def _is_trained(story: Story, layer: Value) -> bool:
    """Tell whether a layer is an optimizer's, and nothing freezes it."""
    optimizers = [d.subject for d in story.does(Do.STEP) if d.subject is not None]
    if not any(owns(o, layer) is Answer.YES for o in optimizers):
        return False
    for event in story.events:
        is_call = event.name == ".requires_grad_" and event.args
        is_store = event.act is Form.STORE and event.name == "requires_grad"
        if (is_call or is_store) and constant(event.args[0]) is False:
            owner = event.receiver
            if isinstance(owner, Part) and owner.key in ("weight", "bias"):
                owner = owner.of
            if owner is layer or model_of(owner) is not None or owner is None:
                return False
            if isinstance(owner, (Part, Result)) and owner is not layer:
                return False
    return True


def _lost(term: Value) -> list[tuple[Cut, Value]]:
    cuts = cuts_before(term) if has_history(term) is Answer.NO else []
    return cuts if all(how is Cut.FLAT for how, _ in cuts) else []


def _flat(cuts: Sequence[tuple[Cut, Value]]) -> Value | None:
    """The operation without a slope that takes the gradient from a loss, where it has none left."""
    found = next((v for how, v in cuts if how is Cut.FLAT), None)
    while found is not None and found.inputs:  # an argmax that is divided is still the argmax
        below = next(iter(same_numbers(found.inputs[0])))
        if cut_of(below) is not Cut.FLAT:
            break
        found = below
    return found


def name_of_flat(value: Value) -> str:
    """Return what an operation without a slope is called in a sentence."""
    maker = value.maker if isinstance(value, Result) else ""
    name = operation_name(maker) or (str(value.key) if isinstance(value, Part) else "")
    return "a comparison" if name in COMPARISONS else name
