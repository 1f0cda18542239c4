"""Configuration files that a program loads: what they say, as values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Table,
    Value,
    origins,
)
from traindx.model.run import Source

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

Keywords = Mapping[str, Value]
LOADERS = {
    "json.load": (".json",), "json.loads": (".json",),
    "yaml.safe_load": (".yaml", ".yml"), "yaml.load": (".yaml", ".yml"),
    "yaml.full_load": (".yaml", ".yml"), "yaml.unsafe_load": (".yaml", ".yml"),
    "tomllib.load": (".toml",), "tomllib.loads": (".toml",), "toml.load": (".toml",),
    "tomli.load": (".toml",), "omegaconf.OmegaConf.load": (".yaml", ".yml"),
}  # fmt: skip
OF_TEXT = frozenset(
    {"json.loads", "yaml.safe_load", "yaml.load", "yaml.full_load", "tomllib.loads"}
)
BY_ATTRIBUTE = "omegaconf.OmegaConf.load"  # its entries are attributes, too
PARSES = (".parse_args", ".parse_known_args")
MAX_VALUES = 4000  # of one file; a longer one is data
DEEPEST = 20


def loaded(
    m: Machine, name: str, args: Sequence[Value], kwargs: Keywords
) -> Table | Items | Result | None:
    """Return what a call loads from a configuration file, or a text; None if it is unknown."""
    if name not in LOADERS or not args:
        return None
    text = args[0].value if isinstance(args[0], Known) else None
    if isinstance(text, str) and name in OF_TEXT:
        found: Source | None = Source(f"text{LOADERS[name][0]}", text)
    else:
        found = _meant(m, args[0], LOADERS[name]) if m.project.documents else None
    data = None if found is None else parsed(found)
    if not isinstance(data, (dict, list)):
        return None
    by_attribute = name == BY_ATTRIBUTE or "object_hook" in kwargs
    made = _value(data, by_attribute)
    return made if isinstance(made, (Table, Items, Result)) else None


def _meant(m: Machine, path: Value, suffixes: tuple[str, ...]) -> Source | None:
    """Return the file that a path leads to: the one that its texts name, or the only one there."""
    known = [d for d in m.project.documents if d.path.endswith(suffixes)]
    texts = list(dict.fromkeys(_texts(m, path)))
    parts = {part for text in texts for part in PurePosixPath(text).parts}
    named = [d for d in known if PurePosixPath(d.path).name in parts]
    if len(named) > 1:
        named = [d for d in named if PurePosixPath(d.path).parent.name in parts]
    is_configuration = ".json" not in suffixes  # JSON holds data as often
    is_unnamed = not any(text.endswith(suffixes) for text in texts)
    if not named and len(known) == 1 and is_configuration and is_unnamed:
        return known[0]
    return named[0] if len(named) == 1 else None


def _texts(m: Machine, path: Value) -> Iterator[str]:
    """The texts that a path is made of; of an option of the command line, its default."""
    for value in origins(path, 200):
        if isinstance(value, Known) and isinstance(value.value, str):
            yield value.value
        is_option = isinstance(value, Part) and isinstance(value.of, Result)
        if is_option and isinstance(value, Part) and getattr(value.of, "maker", "") in PARSES:
            yield from _defaults(m, str(value.key))


def _defaults(m: Machine, option: str) -> Iterator[str]:
    for event in m.events:
        flags = [str(a.value) for a in event.args if isinstance(a, Known)]
        if event.name != ".add_argument":
            continue
        if option in {flag.lstrip("-").replace("-", "_") for flag in flags}:
            for value in origins(event.kwargs.get("default", Known(None)), 50):
                if isinstance(value, Known) and isinstance(value.value, str):
                    yield value.value


@lru_cache(maxsize=64)
def parsed(document: Source) -> Any:
    """Return what a file says; None where it cannot be read."""
    suffix = PurePosixPath(document.path).suffix
    try:
        if suffix == ".json":
            return json.loads(document.text)
        if suffix == ".toml":
            return import_module("tomllib").loads(document.text)
        return import_module("yaml").safe_load(document.text)
    except Exception:  # of three parsers, one of them from outside
        return None


def _value(data: object, by_attribute: bool) -> Value:
    """Return the value that stands for what was read, within bounds."""
    spent = 0

    def made(part: object, depth: int) -> Value:
        nonlocal spent
        spent += 1
        if spent > MAX_VALUES or depth > DEEPEST:
            return Result("builtins.object")
        if isinstance(part, dict):
            return _table({str(k): _named(k, made(v, depth + 1)) for k, v in part.items()})
        if isinstance(part, list):
            return Items("list", held=dict(enumerate(made(v, depth + 1) for v in part)))
        return Known(part)

    _table: Callable[[dict[Any, Value]], Value] = _namespace if by_attribute else _mapping
    return made(data, 0)


def _named(key: object, value: Value) -> Value:
    value.add_name(str(key))
    return value


def _mapping(entries: dict[Any, Value]) -> Value:
    return Table(held=entries)


def _namespace(entries: dict[Any, Value]) -> Value:
    return Result("types.SimpleNamespace", kwargs=entries, held=entries)
