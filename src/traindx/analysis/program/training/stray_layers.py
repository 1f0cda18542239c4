"""Layers that train and that no nn.Module registers."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Items,
    Known,
    Result,
    Table,
    Value,
    depends_on,
    options_of,
)
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.layers import (
    Assigned,
    assigned,
    forward_passes,
    has_weights,
    is_bare_leaf,
    is_layer,
    is_module,
    is_parameter,
    kept_apart,
    models_made,
    registered,
)
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Story

# calls that hand the weights of a module on, or put it into evaluation mode for good
HANDED = frozenset({".parameters", ".named_parameters", ".state_dict", ".eval", ".children"})
REGISTERS = frozenset({".add_module", ".register_module", ".register_parameter"})
LOADED = frozenset({".load_state_dict", ".copy_"})


def stray_members(story: Story) -> Iterator[Assigned]:
    """Yield the attributes of models that hold layers or tensors which nothing registers."""
    if not is_test_file(story.execution.module):
        yield from (kept for kept in assigned(story.events) if _is_unregistered(story, kept))


def _is_unregistered(story: Story, kept: Assigned) -> bool:
    """Tell whether a plain list, dict or object holds layers that train and nothing registers."""
    if is_bare_leaf(kept.value):
        is_used = _is_still_there(kept) and _trains(story, kept.value, None)
        return is_used and not _is_hidden(story, kept.value)
    is_object = isinstance(kept.value, Instance) and not is_module(kept.value)
    if not (is_object or isinstance(kept.value, (Items, Table))):
        return False
    members = [m for m in kept_apart(kept.value) if not isinstance(m, Known)]  # their settings
    kinds = [m for m in members if has_weights(m) is Answer.YES]
    is_for_layers = len(kinds) * 2 > len(members) or (is_object and bool(kinds))
    if not is_for_layers or not _is_still_there(kept):
        return False
    layers = [option for m in kinds for option in options_of(m)]
    if len(members) == 1 and isinstance(members[0], Instance):
        return False  # a model alone in a list: a known way to hide a teacher from torch
    known = [p for m in models_made(story.events) for p in registered(m) if p is not m]
    if any(layer is part for layer in layers for part in known):
        return False
    parts = [part for layer in layers for part in registered(layer)] if is_object else layers
    trained = [m for m in parts if _trains(story, m, kept.model if is_object else None)]
    return bool(trained) and not any(_is_hidden(story, m) for m in parts)


def _is_still_there(kept: Assigned) -> bool:
    """Tell whether the attribute is not replaced later, by a ModuleList of the same layers."""
    return kept.model.fields.get(kept.name) is kept.value


def _trains(story: Story, layer: Value, model: Value | None) -> bool:
    """Tell whether gradients flow through a layer or parameter where it, or a model, is used."""
    if is_parameter(layer) or is_bare_leaf(layer):
        takers = [e for e in story.flow.takers(layer) if e.act is EventForm.CALL and not e.is_own]
        return any(e.gradients is Answer.YES and operation_of(e.result) for e in takers)
    for event in forward_passes(story, layer):
        if model is not None and model not in event.within:
            continue
        users = [] if event.result is None else story.flow.users(event.result)
        cut = [u for u in users if isinstance(u, Result) and u.maker == ".detach"]
        if event.gradients is Answer.YES and (not users or len(cut) < len(users)):
            return True
    return False


def _is_hidden(story: Story, layer: Value) -> bool:
    """Tell whether the weights of a layer go elsewhere by hand, or are frozen."""
    for event in story.events:
        if event.receiver is layer and event.name in HANDED | {".requires_grad_"}:
            return True
        is_switch = event.act is EventForm.STORE and event.name == "requires_grad"
        if is_switch and event.receiver is not None and depends_on(event.receiver, layer):
            return True
        if event.name in REGISTERS and any(a is layer for a in event.args):
            return True
        given = event.argument("params", 0) if event.name.startswith("torch.optim.") else None
        is_tensor = is_parameter(layer) or is_bare_leaf(layer)
        if is_tensor and given is not None and depends_on(given, layer):
            return True
    return False


def made_in_forward(story: Story) -> Iterator[ProgramEvent]:
    """Yield where a forward pass makes layers with weights, uses them, and drops them again."""
    for event in () if is_test_file(story.execution.module) else story.events:
        layer = event.result
        if not event.within or layer is None or layer.site is not event.site:
            continue
        if event.gradients is Answer.NO or not is_layer(layer) or is_parameter(layer):
            continue
        is_used = any(e.within for e in forward_passes(story, layer))
        if is_used and has_weights(layer) is Answer.YES and not _is_kept(story, layer):
            yield event


def _is_kept(story: Story, layer: Value) -> bool:
    """Tell whether a layer becomes an attribute, or is given weights from elsewhere."""
    for event in story.events:
        if event.act is EventForm.STORE and any(a is layer for a in event.args):
            return True
        is_written = event.act is EventForm.STORE or event.name in LOADED
        if is_written and event.receiver is not None and depends_on(event.receiver, layer):
            return True
    return False
