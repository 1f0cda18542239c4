"""Hooks that change gradients while a backward pass computes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import FunctionValue, PartialCall, Value, origins
from traindx.analysis.program.training.acts import BOUNDS, Deed, Do, model_of
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

HOOKS = (".register_hook", ".register_post_accumulate_grad_hook")
NORMS = frozenset({"norm", "vector_norm"})


def bounding_hooks(story: Story) -> list[Deed]:
    """Return the hooks of parameters that bound their gradients, by value or by their norm."""
    found = (e for e in story.events if e.name in HOOKS and e.args)
    return [Deed(Do.CLIP, e, e.receiver) for e in found if _is_parameter(e) and _bounds(story, e)]


def _is_parameter(event: ProgramEvent) -> bool:
    return event.receiver is not None and model_of(event.receiver) is not None


def hooked_gradients(story: Story, hook: ProgramEvent) -> Iterator[Value]:
    """Yield what the function of a hook makes of a gradient."""
    function = _function(hook.args[0])
    node = None if function is None else function.node
    for event in story.events[hook.order + 1 :] if node is not None else ():
        is_run = isinstance(event.callee, FunctionValue) and event.callee.node is node
        if is_run and event.result is not None:
            yield event.result


def _bounds(story: Story, hook: ProgramEvent) -> bool:
    """Tell whether what autograd is to call gives back less than it gets."""
    function = _function(hook.args[0])
    if any(map(_is_bounded, hooked_gradients(story, hook))):
        return True
    clips = [d.event for d in story.does(Do.CLIP) if d.event.order > hook.order]
    return function is not None and any(e.function is function.node for e in clips)


def _function(value: Value) -> FunctionValue | None:
    while isinstance(value, PartialCall):
        value = value.callee
    return value if isinstance(value, FunctionValue) else None


def _is_bounded(result: Value) -> bool:
    """Tell whether a gradient is clamped, or divided by its norm; a scale that is read lifts it."""
    made = [o for o in map(operation_of, origins(result, 60)) if o is not None]
    is_scaled = any(getattr(v, "maker", "") == ".get_scale" for v in origins(result, 60))
    first = operation_of(result)
    is_rescaled = first is not None and first.name in ("mul", "div")
    return not is_scaled and (
        (first is not None and first.name in BOUNDS)
        or (is_rescaled and any(o.name in NORMS for o in made))
    )
