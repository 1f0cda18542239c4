"""Settings that are read as attributes: namespaces, and dictionaries with attributes."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from traindx.analysis.program.execution import mappings
from traindx.analysis.program.execution.values import (
    ClassValue,
    Instance,
    Result,
    Site,
    Table,
    Value,
)

PLAIN = frozenset({"types.SimpleNamespace", "argparse.Namespace"})
NESTED = frozenset(
    {"easydict.EasyDict", "omegaconf.OmegaConf.create", "omegaconf.DictConfig", "munch.Munch",
     "munch.munchify", "box.Box", "addict.Dict", "ml_collections.ConfigDict", "dotmap.DotMap",
     "ml_collections.config_dict.ConfigDict"}
)  # fmt: skip
MERGES = "omegaconf.OmegaConf.merge"
MAKES = PLAIN | NESTED
DEEP = 10


def namespace(
    name: str, args: Sequence[Value], kwargs: Mapping[str, Value], site: Site | None
) -> Result:
    """Return an object whose attributes are what it is given."""
    made = Result(name, None, tuple(args), dict(kwargs), site=site)
    given = mappings.entries_of(args[0]) if args and name in NESTED else None
    if given is not None and given.is_whole:
        made.fields.update({k: _nested(name, v) for k, v in given.fields.items()})
    made.fields.update({k: v for k, v in kwargs.items() if k != "**"})
    return made


def _nested(name: str, value: Value, depth: int = DEEP) -> Value:
    if not isinstance(value, Table) or not value.is_whole or depth == 0:
        return value
    inner = {k: _nested(name, v, depth - 1) for k, v in value.fields.items()}
    made = Result(name, None, (value,), site=value.site)
    made.fields.update(inner)
    return made


def entry(owner: Value, key: object) -> Value | None:
    """Return what settings say under a key, where nothing outside of the source says otherwise."""
    is_made = isinstance(owner, Result) and (owner.maker in MAKES or owner.maker == MERGES)
    if not is_made and not isinstance(owner, Table):
        return None
    if key in owner.fields or isinstance(owner, Table):
        return owner.fields.get(key)
    if not isinstance(owner, Result):
        return None
    if owner.maker == MERGES:
        found = (entry(given, key) for given in reversed(owner.args))
        return next((value for value in found if value is not None), None)
    given = owner.kwargs.get("**") if owner.maker in MAKES else None
    given = given or (owner.args[0] if owner.maker in NESTED and owner.args else None)
    entries = mappings.entries_of(given)
    return None if entries is None else entries.fields.get(key)


def attribute(owner: Instance, name: str) -> Value | None:
    """Return an entry of a dictionary of a class that gives them as attributes, too."""
    if name.startswith("__") or not any(map(_reads_entries, owner.cls.lineage())):
        return None
    entries = mappings.entries_of(owner)
    return None if entries is None or not entries.is_whole else entries.fields.get(name)


def _reads_entries(cls: ClassValue) -> bool:
    """Tell whether a class has its own way to find an attribute: `__getattr__ = dict.get`."""
    given = (n for n in cls.node.body if isinstance(n, ast.Assign))
    names = {t.id for n in given for t in n.targets if isinstance(t, ast.Name)}
    return "__getattr__" in cls.methods or "__getattr__" in names
