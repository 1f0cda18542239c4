"""Tensors of a forward pass that are made on the CPU whatever the input is on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Instance, Items, Result, Value
from traindx.analysis.program.training.flow import inside
from traindx.analysis.program.training.layers import assigned, is_layer, is_module, registered
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Program, Story
from traindx.analysis.program.training.tensors import (
    comes_from,
    is_left_in_place,
    left_in_place,
    made_without_device,
    may_be_accelerator,
)

GLOBAL = frozenset({"torch.set_default_device", "torch.set_default_tensor_type"})
# contexts that leave the default device as it is
NEUTRAL = (
    "no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "autocast", "record_function",
    "detect_anomaly", "sdpa_kernel",
)  # fmt: skip
MEETS = frozenset(
    {"add", "sub", "mul", "div", "pow", "matmul", "cat", "stack", "where", "lt", "le", "gt", "ge",
     "eq", "ne", "and", "or", "masked_fill", "maximum", "minimum", "einsum", "addmm"}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CpuTensor:
    """A tensor that is made without a device, and where it meets what comes from the input."""

    made: ProgramEvent
    meeting: Value
    is_kept: bool  # as a plain attribute of a model that moves


def cpu_tensors(story: Story) -> Iterator[CpuTensor]:
    """Yield the tensors that stay on the CPU in a program that trains on another device."""
    moved = _moves(story.program)
    for event in story.events if moved else ():
        if made_without_device(event) and _is_default(event):
            is_kept = _is_attribute(story, event)
            meeting = _meeting(story, event) if event.within or is_kept else None
            if meeting is not None:
                yield CpuTensor(event, meeting, is_kept)


def _is_default(event: ProgramEvent) -> bool:
    """Tell whether nothing around an event may say where tensors are made."""
    makers = (c.maker if isinstance(c, Result) else "?" for c in event.contexts)
    return all(m.endswith(NEUTRAL) for m in makers)


def _is_attribute(story: Story, event: ProgramEvent) -> bool:
    """Tell whether a tensor, or what is computed from it, is an attribute of a model that moves."""
    if event.within or event.result is None:
        return False
    kept, moved = story.recall(_owners), story.program.recall(_moved_parts)
    after = {id(v) for v in left_in_place(story, event.result)}
    return any(
        id(owner) in moved
        and not any({"to", "_apply", "cuda"} & cls.methods for cls in owner.cls.lineage())
        for key in after
        for owner in kept.get(key, ())
    )


def _owners(story: Story) -> dict[int, list[Instance]]:
    """The models that have each value as an attribute."""
    found: dict[int, list[Instance]] = {}
    for kept in assigned(story.index.stores):
        found.setdefault(id(kept.value), []).append(kept.model)
    return found


def _moved_parts(program: Program) -> set[int]:
    """The modules that are moved to another device, with all that they hold."""
    moved = {id(e.receiver): e.receiver for e in _moves(program) if is_module(e.receiver)}
    return {id(part) for m in moved.values() if m is not None for part in registered(m)}


def _model_inputs(story: Story) -> list[Value]:
    """What the forward passes of the project's models are given."""
    return [
        value
        for e in story.index.named("forward", "__call__")
        if e.is_own and isinstance(e.receiver, Instance) and is_module(e.receiver)
        for value in (*e.args, *e.kwargs.values())
    ]


def _meeting(story: Story, made: ProgramEvent) -> Value | None:
    """Return where a tensor meets what comes from the inputs of a forward pass."""
    sources = story.recall(_model_inputs)
    pending: list[Value] = [] if made.result is None else [made.result]
    seen = {id(v) for v in pending}
    while pending:
        value = pending.pop()
        for user in story.flow.users(value):
            operation = operation_of(user)
            if id(user) in seen or not is_left_in_place(user):
                continue
            seen.add(id(user))
            if operation is None or (operation.name == "getitem" and user.inputs[0] is not value):
                if not isinstance(user, Result):
                    pending.append(user)
                continue
            held = (v for o in operation.operands for v in inside(o))
            others = [v for v in held if not isinstance(v, Items) and id(v) not in seen]
            if operation.name in MEETS and any(comes_from(v, sources) for v in others):
                return user
            if not is_layer(getattr(user, "receiver", None)):
                pending.append(user)
    return None


@lru_cache(maxsize=8)
def _moves(program: Program) -> tuple[ProgramEvent, ...]:
    """Return the moves to another device; none where all tensors are made on one by default."""
    events = [e for s in program.stories for e in s.events]
    if any(e.name in GLOBAL for e in events):
        return ()
    return tuple(e for e in events if e.name in (".to", ".cuda") and may_be_accelerator(e))
