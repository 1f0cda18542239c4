"""Number types: what is cast to half precision, and which type autocast computes in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.frameworks import is_trainer
from traindx.analysis.program.execution.library import LISTINGS, SAME, modules_in
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    External,
    Instance,
    Known,
    Part,
    Result,
    Site,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.default_dtype import FIRST, default_dtype
from traindx.analysis.program.training.layers import (
    HOLDERS,
    has_weights,
    is_layer,
    registered,
)
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

HALF = ("torch.float16", "torch.half", "torch.HalfTensor", "torch.cuda.HalfTensor")
TYPES = {"half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16"}
CASTS = frozenset({"to", "type", *TYPES})
AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast")
# what leaves a number of the type that it was
KEEPS = frozenset({"mean", "sum", "mul", "div", "clone", "contiguous", "neg"})


def type_named(value: Value | None) -> str:
    """Return the number type that a value names: `torch.float16`, `"float16"`."""
    if isinstance(value, External) and value.name.startswith("torch."):
        last = value.name.rsplit(".", 1)[-1]
        return "float16" if value.name in HALF else {"float": "float32"}.get(last, last)
    text = constant(value)
    if not isinstance(text, str):
        return ""
    return {"half": "float16", "fp16": "float16", "bf16": "bfloat16"}.get(text, text)


def cast_to(event: ProgramEvent) -> str:
    """Return the number type that a call converts a tensor or model to; empty where it does not."""
    name = event.name.removeprefix(".")
    if event.receiver is None or not event.name.startswith(".") or name not in CASTS:
        return ""
    if name in TYPES:
        return TYPES[name]
    known = {"float16", "float32", "float64", "bfloat16"}
    given = (type_named(v) for v in (*event.args, *event.kwargs.values()))
    return next((g for g in given if g in known), "")


@dataclass(frozen=True)
class Conversion:
    """Where a model gets its number type; `is_mixed` says that other weights may have joined it."""

    site: Site
    dtype: str
    is_mixed: bool


def conversion_of(story: Story, model: Value, before: ProgramEvent) -> Conversion | None:
    """Return what a model was last converted to, or loaded in, before something happens."""
    if isinstance(model, Choice):
        several = [conversion_of(story, option, before) for option in model.options]
        types = {"" if c is None else c.dtype for c in several}
        is_mixed = any(c is not None and c.is_mixed for c in several)
        first = several[0]
        return replace(first, is_mixed=is_mixed) if first and len(types) == 1 else None
    found: Conversion | None = None
    last = -1
    same = {id(v): v for v in _same_weights(model)}
    stored = [e for e in story.index.named("data") if e.act is EventForm.STORE]
    made_or_cast = (*story.index.on(*same.values()), *story.index.giving(*same.values()), *stored)
    concerned = {e.order: e for e in made_or_cast if e.order < before.order}
    for _, event in sorted(concerned.items()):
        dtype = ""
        if id(event.receiver) in same:
            dtype = cast_to(event) or _taken_over(story, event)
        dtype = dtype or _cast_one_by_one(event, model)
        made = same.get(id(event.result))
        is_here = made is not None and made.site is not None and made.site.node is event.node
        if made is not None and not dtype and is_here:
            dtype = _loaded_type(made) or _default_type(story, made, event)
        if dtype:
            found, last = Conversion(event.site, dtype, False), _end_of(story, event)
    by_trainer = _cast_by_trainer(story, before)
    if found is None and by_trainer is None:
        return _made_in(story, model, before)
    if by_trainer is not None or found is None:
        return by_trainer
    return replace(found, is_mixed=_is_mixed(story, model, last, before))


def _made_in(story: Story, model: Value, before: ProgramEvent) -> Conversion | None:
    """Return the type that all layers of a model were made in, or converted to one by one."""
    parts = registered(model)
    layers = [p for p in parts if isinstance(p, Result) and p.maker not in HOLDERS]
    layers = [p for p in layers if is_layer(p) and has_weights(p) is Answer.YES]
    types = {story.dtypes.weights.of(layer, before) for layer in layers}
    if len(types) != 1 or not types <= {"float16", "bfloat16"}:
        return None
    cast = [e for e in story.events if any(e.receiver is x for x in layers) and cast_to(e)]
    site, last = (cast[0].site, cast[-1].order) if cast else (layers[0].site, before.order)
    (dtype,) = types
    if site is None or dtype is None:
        return None
    return Conversion(site, dtype, _is_mixed(story, model, last, before))


def _taken_over(story: Story, event: ProgramEvent) -> str:
    """Return the type that a model takes over from a tensor: `model.to(x)`, `model.to(x.dtype)`."""
    given = event.argument("other", 0) if event.name == ".to" else None
    given = event.kwargs.get("dtype", given) if event.name in (".to", ".type") else given
    if isinstance(given, Part) and given.key == "dtype":
        given = given.of
    known = None if given is None else story.dtypes.of(given)
    return "" if known is None or not known.dtype.startswith(("float", "bfloat")) else known.dtype


def _cast_one_by_one(event: ProgramEvent, model: Value) -> str:
    """Return the type that every parameter is given: `p.data = p.data.half()`."""
    is_stored = event.act is EventForm.STORE and event.name == "data"
    made = event.args[0] if is_stored and _is_parameter_of(event.receiver, model) else None
    if not isinstance(made, Result) or made.receiver is None or event.guards:
        return ""
    name = made.maker.removeprefix(".")
    given = [type_named(v) for v in (*made.args, *made.kwargs.values())]
    return TYPES.get(name, "") or (given[0] if name in CASTS and len(given) == 1 else "")


def _cast_by_trainer(story: Story, before: ProgramEvent) -> Conversion | None:
    """Return where Lightning is told to convert a model: `Trainer(precision="16-true")`."""
    for event in story.events if before.by_framework else ():
        given = str(constant(event.kwargs.get("precision"))) if is_trainer(event.result) else ""
        dtype = {"16-true": "float16", "bf16-true": "bfloat16"}.get(given)
        if dtype is not None:
            return Conversion(event.site, dtype, False)
    return None


def _same_weights(model: Value) -> Iterator[Value]:
    """Yield a model, and what it was before it was moved or converted."""
    yield model
    while isinstance(model, Result) and model.receiver is not None and model.maker[1:] in SAME:
        model = model.receiver
        yield model


def _loaded_type(model: Value) -> str:
    if not isinstance(model, Result):
        return ""
    given = model.kwargs.get("torch_dtype") or model.kwargs.get("dtype")
    return type_named(given)


def _default_type(story: Story, model: Value, event: ProgramEvent) -> str:
    """Return the type that a model is made in by default, where that is not float32."""
    is_made = isinstance(model, Instance) or is_layer(model)
    found = default_dtype(story, event.order, type_named) if is_made else ""
    return "" if found == FIRST else found


def _end_of(story: Story, event: ProgramEvent) -> int:
    """Return the order of the last thing that is done inside of a call."""
    return story.recall(_ends).get(event.node, event.order)


def _ends(story: Story) -> dict[object, int]:
    return {caller.node: event.order for event in story.events for caller in event.callers}


def _is_mixed(story: Story, model: Value, since: int, before: ProgramEvent) -> bool:
    """Tell whether a model gets new layers or types, or something out of sight gets the model."""
    parts = {id(p) for p in modules_in(model)}
    for event in story.index.stores:
        is_changed = since < event.order < before.order and id(event.receiver) in parts
        if is_changed and not event.is_own and not isinstance(event.args[0], (Known, External)):
            return True
    for event in story.index.given(model):
        is_seen = event.is_own or event.act is EventForm.STORE or is_trainer(event.result)
        is_between = since < event.order < before.order
        if is_between and not is_seen and not story.is_harmless(event):
            return True
    return _is_raised(story, model, since, before)


def _is_raised(story: Story, model: Value, since: int, before: ProgramEvent) -> bool:
    """Tell whether parameters of a model are converted to float32 one by one."""
    return any(
        since < e.order < before.order and _is_parameter_of(e.receiver, model)
        for e in story.recall(_float32_casts)
    )


def _float32_casts(story: Story) -> list[ProgramEvent]:
    return [event for event in story.events if cast_to(event) == "float32"]


def _is_parameter_of(value: Value | None, model: Value) -> bool:
    lists = (v for v in origins(value, 50) if isinstance(v, Result)) if value is not None else ()
    return any(v.maker in LISTINGS and v.receiver is model for v in lists)


def half_cast(value: Value | None, depth: int = 6) -> Result | None:
    """Return the cast to float16 that a number comes from, through sums and factors."""
    operation = operation_of(value)
    if operation is None or not isinstance(value, Result) or depth == 0:
        return None
    if operation.name in CASTS and value.receiver is not None:
        given = [type_named(v) for v in (*value.args, *value.kwargs.values())]
        is_half = operation.name == "half" or "float16" in given
        return value if is_half else None
    if operation.name not in KEEPS:
        return None
    found = (half_cast(v, depth - 1) for v in operation.operands)
    return next((f for f in found if f is not None), None)


def autocast_type(context: Value) -> str:
    """Return the type that a context computes in; empty where it is none or is not known."""
    if not isinstance(context, Result) or context.maker not in AUTOCAST or "**" in context.kwargs:
        return ""
    # `autocast(device, dtype, enabled)`, and of old `autocast(enabled, dtype)`
    first, second, third = (*context.args[:3], None, None, None)[:3]
    is_switch = isinstance(constant(first), bool)
    enabled = context.kwargs.get("enabled", first if is_switch else third)
    given = context.kwargs.get("dtype", second)
    if enabled is not None and constant(enabled) is not True:
        return ""
    if given is not None:
        return type_named(given) if is_on_cuda(context) else ""
    return "float16" if is_on_cuda(context) else ""


def is_on_cuda(context: Result) -> bool:
    """Tell whether autocast is CUDA's: by name, or of the old form that has no device."""
    device = context.kwargs.get("device_type") or next(iter(context.args), None)
    is_old = context.maker != "torch.autocast" and (device is None or constant(device) is True)
    return is_old or constant(device) == "cuda"
