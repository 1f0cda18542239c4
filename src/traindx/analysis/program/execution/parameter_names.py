"""The names of the parameters of a model, where all that it is made of is in sight."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import classes, iteration, library, names
from traindx.analysis.program.execution.layer_parts import PARAMETER
from traindx.analysis.program.execution.values import (
    Choice,
    Instance,
    Items,
    Known,
    Part,
    Result,
    Table,
    Unknown,
    Value,
    constant,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

LISTING = ".named_parameters"
LISTINGS = (LISTING, ".parameters")
AS_LIST = ("builtins.list", "builtins.tuple", "builtins.iter")
SWITCHES = ("requires_grad", ".requires_grad_")
MOST = 300  # names of one model
WEIGHTED = frozenset(
    {"Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
     "ConvTranspose3d", "LayerNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"}
)  # fmt: skip
ATTENTION = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
RECURRENT = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
PLAIN = ("ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "Dropout", "Identity", "Flatten", "Pool",
         "Softmax", "ELU", "Loss", "Mish", "Upsample", "Unflatten", "Pad", "Softplus")  # fmt: skip


class _OutOfSight(Exception):
    """A part of a model is out of sight."""


def named_pairs(m: Machine, listing: Value) -> list[Value] | None:
    """Return what `model.named_parameters()` lists, as pairs; None where it is not all in sight.

    Of `model.parameters()`, the parameters.
    """
    while isinstance(listing, Result) and listing.maker in AS_LIST and len(listing.args) == 1:
        listing = listing.args[0]
    if not isinstance(listing, Result) or listing.maker not in LISTINGS or listing.args:
        return None
    model = listing.receiver
    if model is None or not library.is_module(model) or listing.kwargs:
        return None
    found = parameters_by_name(model)
    if found is None:
        return None
    is_named = listing.maker == LISTING
    are_on = not any(event.name in SWITCHES for event in m.events)
    pairs: list[Value] = []
    for name, parameter in found:
        element = Result("builtins.next", args=(listing,), gradients=m.gradients)
        held = Part(element, 1) if is_named else element
        held.fields[PARAMETER] = parameter
        given = parameter.kwargs if isinstance(parameter, Result) else {}
        if are_on and "requires_grad" not in given:
            held.fields["requires_grad"] = Known(True)
        pairs.append(iteration.items_of((Known(name), held), "tuple") if is_named else held)
    return pairs


def collected_from(m: Machine, node: ast.For, over: Value) -> Value:
    """Return what a loop over the parameters of a model goes over, one by one if it collects.

    So it does where it puts them into lists by their names or shapes, and changes nothing else.
    """
    if not all(map(_only_collects, node.body)):
        return over
    return pairs_of(m, over) or over


def _only_collects(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(map(_only_collects, (*statement.body, *statement.orelse)))
    if isinstance(statement, (ast.Continue, ast.Pass)):
        return True
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Name) for target in statement.targets)
    value = statement.value if isinstance(statement, ast.Expr) else None
    called = value.func if isinstance(value, ast.Call) else None
    if isinstance(called, ast.Attribute):
        return called.attr in ("append", "add", "extend", "info", "debug")
    return isinstance(called, ast.Name) and called.id == "print"


def parameters_by_name(model: Value) -> list[tuple[str, Value]] | None:
    """Return the parameters of a model with their names; None where it is not all in sight."""
    try:
        found = list(_named(model, 8))
    except _OutOfSight:
        return None
    return found if 0 < len(found) <= MOST else None


def _named(module: Value, depth: int) -> Iterator[tuple[str, Value]]:
    """Yield the names of parameters and what has them, in the order of registration."""
    if depth == 0 or isinstance(module, (Choice, Unknown)):
        raise _OutOfSight
    for name, value in _children(module):
        if isinstance(value, Result) and value.maker.endswith("nn.Parameter"):
            yield name, value
            continue
        own = own_names(value)
        if own is not None:
            yield from ((f"{name}.{key}", names.part(value, key)) for key in own)
            continue
        for inner, parameter in _named(value, depth - 1):
            yield f"{name}.{inner}", parameter


def _children(module: Value) -> Iterator[tuple[str, Value]]:
    """The modules and parameters that a module keeps."""
    if isinstance(module, Instance) and library.is_module(module):
        for key, value in module.fields.items():
            if isinstance(key, str) and _may_learn(value):
                yield key, value
        return
    layers = iteration.seen_layers(module) if isinstance(module, Result) else []
    if isinstance(module, Result) and module.maker == "torch.nn.ModuleDict" and module.args:
        held = module.args[0]
        layers = []
        if isinstance(held, Table) and held.is_whole:
            yield from ((str(k), v) for k, v in held.fields.items())
            return
    if not layers:
        raise _OutOfSight
    yield from ((str(i), v) for i, v in enumerate(layers))


def _may_learn(value: Value) -> bool:
    """Tell whether an attribute is a module or parameter, or may be one out of sight."""
    if isinstance(value, Instance):
        return library.is_module(value)
    if isinstance(value, (Unknown, Choice, Part)):
        return _is_doubtful(value)
    if not isinstance(value, Result) or value.receiver is not None:
        return False
    return value.maker.startswith(("torch.nn.", "timm.", "torchvision.", "transformers.",
                                   "recursion.")) and "functional" not in value.maker  # fmt: skip


def _is_doubtful(value: Value) -> bool:
    """A parameter of the constructor that nobody gives may be a module; a size is none."""
    return isinstance(value, Choice) and any(_may_learn(o) for o in value.options)


def own_names(layer: Value) -> tuple[str, ...] | None:
    """The names of a layer's own parameters; None for what holds others."""
    kind = layer.maker.rsplit(".", 1)[-1] if isinstance(layer, Result) else ""
    if not isinstance(layer, Result) or not layer.maker.startswith("torch.nn."):
        return None
    if kind in WEIGHTED:
        has_bias = constant(layer.kwargs.get("bias")) is not False
        return ("weight", "bias") if has_bias else ("weight",)
    if kind in ("Embedding", "EmbeddingBag", "PReLU", "RMSNorm"):
        return ("weight",)
    if kind == "MultiheadAttention":
        return ATTENTION
    if kind in ("LSTM", "GRU", "RNN"):
        return RECURRENT
    return () if any(word in kind for word in PLAIN) else None


def pairs_of(m: Machine, over: Value) -> Items | None:
    """Return the list of a model's parameters by name, where all of it is in sight."""
    found = named_pairs(m, over)
    return None if found is None else iteration.items_of(found)


def has_attribute(args: Sequence[Value]) -> Value | None:
    """`hasattr(layer, "weight")` of a layer of torch, whose parameters are known."""
    name = constant(args[1]) if len(args) == 2 else None
    if isinstance(name, str) and name not in ("weight", "bias"):
        known = classes.has_attribute(args[0], name)
        return None if known is None else Known(known)
    if not isinstance(name, str):
        return None
    if name in args[0].fields:
        return Known(True)
    if isinstance(args[0], Instance):
        is_plain = set(args[0].cls.foreign) == {classes.MODULE} and name not in args[0].cls.methods
        return Known(False) if is_plain else None
    if iteration.is_container(args[0]):
        return Known(False)
    own = own_names(args[0]) if classes.is_layer(args[0]) else None
    return None if own is None else Known(name in own)
