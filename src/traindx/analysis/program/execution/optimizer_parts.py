"""What an optimizer of the project's own keeps: the groups that `Optimizer.__init__` makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import iteration
from traindx.analysis.program.execution.values import (
    External,
    Instance,
    Items,
    Table,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine


def is_optimizer(value: Value) -> bool:
    """Tell whether an object is of a class derived from torch's `Optimizer`."""
    return isinstance(value, Instance) and any(
        base.startswith("torch.optim.") and base.endswith(".Optimizer")
        for base in value.cls.foreign
    )


def fill(m: Machine, owner: Value, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
    """Give an optimizer its groups of parameters, with the settings that hold for all."""
    if not is_optimizer(owner):
        return
    given = dict(zip(("params", "defaults"), args, strict=False)) | dict(kwargs)
    params, defaults = given.get("params", Unknown(name="params")), given.get("defaults")
    held = defaults.fields if isinstance(defaults, Table) else {}
    is_whole = isinstance(defaults, Table) and defaults.is_whole
    tables = params.members if isinstance(params, Items) else []
    own = [t for t in tables if isinstance(t, Table)]
    groups = [Table(is_whole and t.is_whole, held={**held, **t.fields}) for t in own]
    made = groups or [Table(is_whole, held={**held, "params": params})]
    m.write(owner.fields, "param_groups", iteration.items_of(made))
    m.write(owner.fields, "defaults", defaults or Unknown(name="defaults"))
    m.write(owner.fields, "state", Table(False, External("builtins.dict")))
