"""Models and their layers: what they are made of, which weights they have, where they are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.iteration import CONTAINERS, seen_layers
from traindx.analysis.program.execution.library import modules_in
from traindx.analysis.program.execution.model_zoo import mode_dependent_kinds
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    ClassValue,
    FunctionValue,
    Instance,
    Items,
    Known,
    Result,
    Table,
    Value,
    constant,
    options_of,
)
from traindx.analysis.program.shapes.signatures import SIGNATURES, parameters
from traindx.analysis.program.shapes.structure import BARE
from traindx.analysis.program.training.kinds import is_module_class

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MODES = ("Dropout", "BatchNorm", "InstanceNorm", "SyncBatchNorm", "RReLU", "AlphaDropout")
HOLDERS = frozenset({*CONTAINERS, "torch.nn.ModuleDict", "torch.nn.ParameterDict"})
SWITCHES = ("affine", "elementwise_affine")  # that give a normalisation its weights


def layers_in(model: Value | None) -> list[Result]:
    """Return the layers of torch that a model is made of."""
    if model is None:
        return []
    return [part for part in modules_in(model) if isinstance(part, Result) and is_layer(part)]


def mode_dependent_layers(model: Value | None) -> list[str]:
    """Return the kinds of layers of a model that do something else in evaluation mode."""
    if model is None:
        return []
    parts = [part for part in modules_in(model) if isinstance(part, Result)]
    kinds = [part.maker.rsplit(".", 1)[-1] for part in parts if is_layer(part)]
    found = {kind for kind in kinds if any(mode in kind for mode in MODES)}
    named = (mode_dependent_kinds(p.maker, constant(next(iter(p.args), None))) for p in parts)
    return sorted(found.union(*named))


def is_layer(value: Value | None) -> bool:
    """Tell whether a value is a layer or container of torch."""
    return isinstance(value, Result) and value.receiver is None and _is_layer_class(value.maker)


@lru_cache(maxsize=8192)
def _is_layer_class(name: str) -> bool:
    is_class = name.rsplit(".", 1)[-1][:1].isupper()
    return name.startswith("torch.nn.") and name.count(".") == 2 and is_class


def layer_kind(value: Value | None) -> str:
    """Return the class of a layer or parameter of torch: `Linear`; empty where it is none."""
    return value.maker.rsplit(".", 1)[-1] if isinstance(value, Result) and is_layer(value) else ""


def is_module(value: Value | None) -> bool:
    """Tell whether a value is a torch module: a layer, or an object of a class of the project's."""
    if isinstance(value, Instance):
        return is_module_class(value.cls.foreign)
    return is_layer(value) and layer_kind(value) != "Parameter"


def is_parameter(value: Value | None) -> bool:
    """Tell whether a value is a parameter that was made in sight."""
    return layer_kind(value) == "Parameter"


def is_bare_leaf(value: Value | None) -> bool:
    """Tell whether a value is a tensor made to be trained that is no parameter."""
    if not isinstance(value, Result) or is_layer(value):
        return False
    if value.maker == ".requires_grad_":
        return not value.args and not value.kwargs
    is_made = value.maker.startswith("torch.") and value.maker.count(".") == 1
    return is_made and constant(value.kwargs.get("requires_grad")) is True


def setting(layer: Value | None, name: str) -> Value | None:
    """Return an option that a layer was made with, its default included."""
    if not isinstance(layer, Result):
        return None
    if name in layer.kwargs:
        return layer.kwargs[name]
    for position, (parameter, has_default, default) in enumerate(parameters(layer_kind(layer))):
        if parameter == name and position < len(layer.args):
            return layer.args[position]
        if parameter == name and has_default and "**" not in layer.kwargs:
            return Known(default)
    return None


def size(layer: Value | None, name: str) -> int | None:
    """Return an option of a layer that is a whole number in sight."""
    found = constant(setting(layer, name))
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def has_weights(value: Value | None) -> Answer:
    """Tell whether a module has weights that training should change."""
    if isinstance(value, Choice):
        found = {has_weights(option) for option in value.options}
        return found.pop() if len(found) == 1 else Answer.UNKNOWN
    if is_parameter(value) and isinstance(value, Result):
        given = value.kwargs.get("requires_grad") or (value.args[1] if value.args[1:] else None)
        return Answer.of(constant(given) is not False)
    kind = layer_kind(value)
    if isinstance(value, Result) and value.maker in HOLDERS:
        return _any_weights(parts_of(value))
    if kind:
        is_off = any(constant(setting(value, switch)) is False for switch in SWITCHES)
        is_known = kind in SIGNATURES and kind not in BARE
        return Answer.of(is_known and not is_off and not kind.endswith("Loss"))
    if isinstance(value, Instance) and is_module(value):
        return _any_weights(attributes(value).values())
    return Answer.UNKNOWN


def _any_weights(values: Iterable[Value]) -> Answer:
    found = {has_weights(v) for v in values if is_module(v) or is_parameter(v)}
    return Answer.of(Answer.YES in found)


def is_weightless(model: Value | None) -> bool:
    """Tell whether a module of the project certainly has no weights: a loss, a transform."""
    if not isinstance(model, Instance) or not is_module(model):
        return False
    return all(_holds_nothing(part) for part in modules_in(model))


def _holds_nothing(part: Value) -> bool:
    """Tell whether a part of a module is a plain value, or a layer without weights."""
    if isinstance(part, Result):
        is_tensor = part.maker.startswith(("torch.", "operator.")) and not is_layer(part)
        return is_tensor or (is_layer(part) and has_weights(part) is Answer.NO)
    if isinstance(part, Instance):
        return is_module(part)
    return isinstance(part, (Known, Items, Table, Choice, ClassValue, FunctionValue))


def attributes(model: Instance) -> dict[str, Value]:
    """Return what the attributes of a model hold."""
    hidden = ("new", "new by name")
    return {k: v for k, v in model.fields.items() if isinstance(k, str) and k not in hidden}


def parts_of(container: Result) -> list[Value]:
    """Return what a container of torch holds, as far as it is in sight."""
    return [v for v in seen_layers(container) if is_module(v) or is_parameter(v)]


def registered(model: Value) -> list[Value]:
    """Return every module and parameter that `model.parameters()` goes through."""
    found: dict[int, Value] = {}
    pending: list[Value] = [model]
    while pending and len(found) < 500:
        value = pending.pop()
        if isinstance(value, Choice):
            pending.extend(value.options)
        if id(value) in found or not (is_module(value) or is_parameter(value)):
            continue
        found[id(value)] = value
        if isinstance(value, Instance):
            pending.extend(attributes(value).values())
        elif isinstance(value, Result) and value.maker in HOLDERS:
            pending.extend(parts_of(value))
    return list(found.values())


def kept_apart(value: Value, depth: int = 3) -> list[Value]:
    """Return what plain lists, dicts and objects hold, where nn.Module does not look."""
    if isinstance(value, Instance) and not is_module(value):
        held = list(attributes(value).values())
    elif isinstance(value, (Items, Table)):
        held = list(value.fields.values())
    else:
        return [value]
    return [inner for v in held for inner in kept_apart(v, depth - 1)] if depth else []


@dataclass(frozen=True, eq=False)
class Assigned:
    """An attribute that a model is given, and where."""

    model: Instance
    name: str
    value: Value
    event: ProgramEvent


def assigned(events: Iterable[ProgramEvent]) -> Iterator[Assigned]:
    """Yield the attributes that objects of module classes are given, in order."""
    for event in events:
        owner = event.receiver
        is_store = event.act is EventForm.STORE and event.name != "[]"
        is_model = isinstance(owner, Instance) and is_module(owner) and owner.original is None
        if is_store and is_model and isinstance(owner, Instance):
            yield Assigned(owner, event.name, event.args[0], event)


def models_made(events: Iterable[ProgramEvent]) -> list[Instance]:
    """Return the objects of module classes that a program makes and gives attributes, in order."""
    found: dict[int, Instance] = {id(a.model): a.model for a in assigned(events)}
    return list(found.values())


CALLS = ("()", "forward", "__call__", ".forward")


def forward_passes(story: Story, module: Value) -> list[ProgramEvent]:
    """Return the calls of a module, also where it is one of several that may be meant."""
    return story.recall(_passes_by_module).get(id(module), [])


def _passes_by_module(story: Story) -> dict[int, list[ProgramEvent]]:
    found: dict[int, list[ProgramEvent]] = {}
    for event in story.index.named(*CALLS):
        options = () if event.receiver is None else options_of(event.receiver)
        for key in {id(option) for option in options}:
            found.setdefault(key, []).append(event)
    return found


def maker_name(layer: Value) -> str:
    """Return the name of the function in which a layer is made."""
    if layer.site is None:
        return ""
    function = layer.site.module.function_of(layer.site.node)
    return "" if function is None else function.name


def decorators(cls: ClassValue) -> tuple[str, ...]:
    """Return the dotted names of what decorates a class."""
    nodes = (getattr(d, "func", d) for d in cls.node.decorator_list)
    return tuple(cls.module.qualified(n) or "?" for n in nodes)


def has_parameters(value: Value) -> bool:
    """Tell whether a value is a layer of torch with parameters of its own, or a parameter."""
    is_holder = isinstance(value, Result) and value.maker in HOLDERS
    return is_layer(value) and not is_holder and has_weights(value) is Answer.YES
