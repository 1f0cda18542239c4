"""How small a step may get where gradients are bounded: by a clip of their norm or their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Result, Value, origins
from traindx.analysis.program.training.acts import Do, is_gradient, reads_gradients
from traindx.analysis.program.training.gradient_hooks import bounding_hooks, hooked_gradients
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.operations import is_in_place, operation_of
from traindx.analysis.program.training.settings import constants_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# the norm of weights is some ten: steps of 1e-4 need a hundred thousand of them to change it
SMALL_NORM, SMALL_STEP = 1e-2, 1e-4
SMALL_VALUE, SMALL_CHANGE = 1e-3, 1e-5
# Adam divides by the size of gradients, until they come near its epsilon of 1e-8
NEAR_EPSILON = 1e-6

# what a framework's trainer is told the bound by
TRAINERS = {"gradient_clip_val": "gradient_clip_algorithm", "max_grad_norm": ""}
CLAMPS = ("clamp", "clip")
BOUNDS = ("max_norm", "clip_value", "clip_val", "gradient_clip_val")


@dataclass(frozen=True, slots=True, eq=False)
class GradientBound:
    """A bound on gradients: on the norm of all, or on each value."""

    at: ProgramEvent
    limit: float
    is_norm: bool


@dataclass(frozen=True, slots=True)
class StepSize:
    """How an optimizer turns a gradient into a step: `gain` is how far one of size 1 moves.

    None where the size of gradients cancels out, as it does in Adam.
    """

    gain: float | None


def gradient_bounds(story: Story) -> Iterator[GradientBound]:
    """Yield where gradients are bounded by a number that the source gives."""
    for deed in story.does(Do.CLIP):
        yield from _clipped(story, deed.event)
    for hook in story.recall(bounding_hooks):
        for made in hooked_gradients(story, hook.event):
            yield from _bounded(story, hook.event, made)
    for event in story.events:
        yield from _configured(story, event)
        yield from _rescaled(story, event)


def _bounded(story: Story, at: ProgramEvent, gradient: Value) -> Iterator[GradientBound]:
    """What a gradient is bounded by that was computed from another: clamped to two limits."""
    made = operation_of(gradient)
    if made is None or made.name not in CLAMPS:
        return
    limits = [_number(story, value) for value in _limits(gradient)]
    if limits and all(limit is not None for limit in limits):
        yield GradientBound(at, max(abs(limit or 0.0) for limit in limits), False)


def _limits(clamped: Value) -> list[Value]:
    if not isinstance(clamped, Result):
        return []
    return [*clamped.args[1 if clamped.receiver is None else 0 :], *clamped.kwargs.values()]


def _clipped(story: Story, event: ProgramEvent) -> Iterator[GradientBound]:
    if event.act is EventForm.STORE:
        yield from _bounded(story, event, event.args[0])
        return
    is_norm = "norm" in event.name
    if is_in_place(event.name) and event.receiver is not None and is_gradient(event.receiver):
        given, is_norm = event.argument("max", 1), False
    else:
        named = (event.kwargs[name] for name in BOUNDS if name in event.kwargs)
        given = next(named, event.args[1] if len(event.args) > 1 else None)
    limit = _number(story, given)
    if limit is not None:
        yield GradientBound(event, limit, is_norm)


def _configured(story: Story, event: ProgramEvent) -> Iterator[GradientBound]:
    """`Trainer(gradient_clip_val=…)`, `TrainingArguments(max_grad_norm=…)`."""
    name = event.name.rsplit(".", 1)[-1]
    if event.is_own or not name.endswith(("Trainer", "Arguments", "Config")):
        return
    for setting, algorithm in TRAINERS.items():
        limit = _number(story, event.kwargs.get(setting))
        if limit is not None:
            how = constants_of(story, event.kwargs.get(algorithm))
            yield GradientBound(event, limit, "value" not in how)


def _rescaled(story: Story, event: ProgramEvent) -> Iterator[GradientBound]:
    """`p.grad.mul_(max_norm / norm)`: a clip that is written out."""
    is_scaled = is_in_place(event.name) and event.name.rstrip("_").endswith("mul")
    given = (*((event.receiver,) if event.receiver else ()), *event.args)
    if not is_scaled or len(given) < 2 or not is_gradient(given[0]):
        return
    for value in origins(given[1], 30):
        made = operation_of(value)
        if made is None or made.name not in ("div", "truediv") or len(made.operands) < 2:
            continue
        limit = _number(story, made.operands[0])
        if limit is not None and reads_gradients(made.operands[1]):
            yield GradientBound(event, limit, True)


def step_sizes(story: Story) -> list[StepSize] | None:
    """Return how the optimizers of a program make steps; None where one cannot be told."""
    made = [v for v in story.made(Kind.OPTIMIZER) if isinstance(v, Result)]
    found = [step_size(story, optimizer) for optimizer in made]
    return None if None in found else [f for f in found if f is not None]


def step_size(story: Story, optimizer: Result) -> StepSize | None:
    """Return how an optimizer makes its steps; None where that cannot be told."""
    kind = optimizer.maker.rsplit(".", 1)[-1].lower()
    if "adam" in kind or kind in ("rmsprop", "adagrad", "adadelta", "lion"):
        return StepSize(None)
    given = optimizer.kwargs.get("lr", optimizer.args[1] if len(optimizer.args) > 1 else None)
    rate = _number(story, given)
    momentum = _number(story, optimizer.kwargs.get("momentum")) or 0.0
    if kind != "sgd" or rate is None or not 0 <= momentum < 1:
        return None
    return StepSize(rate / (1 - momentum))


def _number(story: Story, value: Value | None) -> float | None:
    """Return the largest number that a value may be; None where it may be another."""
    found = constants_of(story, value)
    numbers = [float(n) for n in found if type(n) in (int, float)]  # type: ignore[arg-type]
    return max(numbers) if numbers and len(numbers) == len(found) else None


def tight_bounds(story: Story) -> list[GradientBound]:
    """Return the bounds on gradients that leave steps too small to train."""
    return [bound for bound in gradient_bounds(story) if _is_tight(story, bound)]


def _is_tight(story: Story, bound: GradientBound) -> bool:
    sizes = step_sizes(story)
    if sizes is None or bound.limit <= 0:
        return False
    return all(_is_small(bound, size) for size in sizes or [StepSize(None)])


def _is_small(bound: GradientBound, size: StepSize) -> bool:
    if size.gain is None:
        return bound.limit <= NEAR_EPSILON
    moved = bound.limit * size.gain
    if bound.is_norm:
        return bound.limit <= SMALL_NORM and moved <= SMALL_STEP
    return bound.limit <= SMALL_VALUE and moved <= SMALL_CHANGE
