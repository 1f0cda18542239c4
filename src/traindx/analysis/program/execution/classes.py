"""The classes of values: what `type` and `isinstance` say where the source decides it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import loader_parts
from traindx.analysis.program.execution.values import (
    ClassValue,
    External,
    Instance,
    Items,
    Known,
    Result,
    Scope,
    Table,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

Keywords = Mapping[str, Value]
MODULE = "torch.nn.Module"
STATE = ("state_dict", "load_state_dict")
STATELESS = ("torch.utils.data.", "pathlib.", "torch.device", "numpy.")
DYNAMIC = frozenset({"__getattr__", "__getattribute__"})


def type_of(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """`type(x)`: the class of an object or layer, or one of Python's own kinds."""
    return class_of(args[0]) if len(args) == 1 else None


def class_of(value: Value) -> Value | None:
    """Return the class of a value; None where the source does not decide it."""
    if isinstance(value, Instance):
        return value.cls
    if isinstance(value, Known) and value.value is not None:
        return External(f"builtins.{type(value.value).__name__}")
    if isinstance(value, Table):
        return External("builtins.dict")
    if isinstance(value, Items):
        return External(f"builtins.{value.kind}")
    return External(value.maker) if isinstance(value, Result) and is_layer(value) else None


HOMES = {"torch.nn": "module", "torch.optim": "optimizer", "torch.optim.lr_scheduler": "schedule"}
BASES = {
    MODULE: "module",
    "torch.optim.Optimizer": "optimizer",
    "torch.optim.optimizer.Optimizer": "optimizer",
    "torch.optim.lr_scheduler.LRScheduler": "schedule",
    "torch.optim.lr_scheduler._LRScheduler": "schedule",
}


def is_layer(value: Value) -> bool:
    """Tell whether a class of torch was called for a value in sight."""
    if not isinstance(value, Result) or value.receiver is not None:
        return False
    return _is_layer_class(value.maker)


def _is_layer_class(name: str) -> bool:
    is_home = name.startswith("torch.nn.") and name.count(".") == 2
    return is_home and name.rsplit(".", 1)[-1][:1].isupper() and not name.endswith(".Parameter")


def name_of(cls: Value) -> str | None:
    """Return `__name__` of a class; None for what is none."""
    if isinstance(cls, ClassValue):
        return cls.node.name
    is_class = isinstance(cls, External) and _is_layer_class(cls.name)
    return cls.name.rsplit(".", 1)[-1] if is_class and isinstance(cls, External) else None


def attribute(owner: Value, name: str) -> Value | None:
    """Return `__name__` of a class or `__class__` of an object; None for anything else."""
    called = name_of(owner) if name == "__name__" else None
    if called is not None:
        return Known(called)
    if name == "__dict__" and isinstance(owner, Instance) and not owner.cls.foreign:
        return _attributes(owner)
    return class_of(owner) if name == "__class__" else None


def attributes_of(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """`vars(x)`: the attributes of an object of the project whose bases are in sight."""
    owner = args[0] if len(args) == 1 else None
    if not isinstance(owner, Instance) or owner.cls.foreign:
        return None
    return _attributes(owner)


def _attributes(owner: Instance) -> Table:
    named = {
        k: v
        for k, v in owner.fields.items()
        if isinstance(k, str) and k.isidentifier() and k != "new"
    }
    return Table(held=named)


def has_attribute(value: Value, name: str) -> bool | None:
    """Return whether an object has an attribute; None where that is out of sight."""
    if name in value.fields:
        return True
    if isinstance(value, Instance):
        own = {m for cls in value.cls.lineage() for m in cls.methods}
        # another attribute may be set by a method that has not run yet
        is_plain = name in STATE and not value.cls.foreign and not own & DYNAMIC
        return True if name in own else False if is_plain else None
    if isinstance(value, (Known, Items, Table)):
        kind = {Items: list, Table: dict}.get(type(value), type(getattr(value, "value", None)))
        return hasattr(kind, name)
    if isinstance(value, Result) and name in STATE and value.receiver is None:
        has_state = is_layer(value) or value.maker.startswith("torch.optim.")
        return True if has_state else False if value.maker.startswith(STATELESS) else None
    return None


def is_one_class(left: Value, right: Value) -> bool | None:
    """Return whether two classes are one; None where one of the values is no class in sight."""
    if name_of(left) is None or name_of(right) is None:
        return None
    if isinstance(left, External) and isinstance(right, External):
        return left.name == right.name
    is_own = isinstance(left, ClassValue) and isinstance(right, ClassValue)
    return is_own and getattr(left, "node", None) is getattr(right, "node", None)


def is_class_among(value: Value, container: Value) -> bool | None:
    """Return whether a class is one of some that are written down: `type(m) in (A, B)`."""
    known = container.members if isinstance(container, Items) and container.is_whole else []
    found = [is_one_class(value, cls) for cls in known]
    return None if not found or None in found else True in found


def is_instance(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """`isinstance(x, A)`, also with several classes."""
    if len(args) != 2:
        return None
    wanted = args[1].members if isinstance(args[1], Items) else [args[1]]
    bases = [BASES.get(w.name) if isinstance(w, External) else None for w in wanted]
    family = _family(args[0])
    if family and bases and None not in bases:
        return Known(family in bases)
    if not isinstance(args[0], (Instance, Result)):
        return None
    if isinstance(args[0], Result):
        return _is_layer_of(args[0], wanted)
    own = {cls.node for cls in args[0].cls.lineage()}
    if any(isinstance(w, ClassValue) and w.node in own for w in wanted):
        return Known(True)
    foreign = {f.rsplit(".", 1)[-1] for f in args[0].cls.foreign}
    if any(isinstance(w, External) and w.name.rsplit(".", 1)[-1] in foreign for w in wanted):
        return Known(True)
    is_plain = set(args[0].cls.foreign) == {MODULE}
    return Known(False) if all(_is_other(w, is_plain) for w in wanted) else None


def _family(value: Value) -> str:
    """Return whether a value is a module, an optimizer, a schedule or surely none; else nothing."""
    if isinstance(value, (Known, Items, Table)):
        return "none"
    if not isinstance(value, Result) or value.receiver is not None:
        return ""
    home, _, last = value.maker.rpartition(".")
    if home in HOMES:
        return HOMES[home] if last[:1].isupper() else ""
    return "none" if home in ("operator", "pathlib", "numpy") else ""


def _is_other(cls: Value, is_plain_module: bool) -> bool:
    """Tell whether a class is none of an object's; one that is only a module is no layer."""
    is_layer = isinstance(cls, External) and _is_layer_class(cls.name)
    return isinstance(cls, ClassValue) or (is_plain_module and is_layer)


def _is_layer_of(layer: Result, wanted: Sequence[Value]) -> Value | None:
    """Tell whether a layer or sampler of torch is of one of some classes, by their names."""
    external = tuple(w.name for w in wanted if isinstance(w, External))
    is_sampler = loader_parts.is_sampler_of(layer, external) if external else None
    if is_sampler is not None and len(external) == len(wanted):
        return Known(is_sampler)
    is_home = layer.maker.startswith("torch.nn.") and "functional" not in layer.maker
    if not is_home or layer.receiver is not None:
        return None
    if layer.maker in external or MODULE in external:
        return Known(True)
    is_plain = all(n.startswith("torch.nn.") and n.count(".") == 2 for n in external)
    are_known = len(external) + sum(isinstance(w, ClassValue) for w in wanted) == len(wanted)
    has_base = any("_" in n or n.endswith("Base") for n in external)
    return Known(False) if is_plain and are_known and not has_base else None
