"""Options of the command line: what they are when nobody gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution import names
from traindx.analysis.program.execution.values import (
    ClassValue,
    Items,
    Known,
    Part,
    Result,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

PARSES = (".parse_args", ".parse_known_args")
INTO_CLASSES = ".parse_args_into_dataclasses"  # of Transformers


def default_of(m: Machine, value: Value) -> Known | None:
    """Return what an option is by default; None where a value is no option, or has none."""
    if not isinstance(value, Part) or not isinstance(value.key, str):
        return None
    parsed, position = value.of, 0
    if isinstance(parsed, Part) and isinstance(parsed.key, int):
        position, parsed = parsed.key, parsed.of
    if not isinstance(parsed, Result):
        return None
    if parsed.maker in PARSES:
        return _of_option(m, value.key)
    if parsed.maker == INTO_CLASSES and isinstance(parsed.receiver, Result):
        return _of_class(m, parsed.receiver, position, value.key)
    return None


def _of_option(m: Machine, option: str) -> Known | None:
    for event in m.events:
        if event.name != ".add_argument":
            continue
        flags = {str(a.value).lstrip("-").replace("-", "_") for a in event.args
                 if isinstance(a, Known)}  # fmt: skip
        default = event.kwargs.get("default")
        if option in flags and isinstance(default, Known):
            return default
    return None


def _of_class(m: Machine, parser: Result, position: int, field: str) -> Known | None:
    """The default of a field of the classes that a parser is made with."""
    given = parser.args[0] if parser.args else parser.kwargs.get("dataclass_types")
    classes = given.members if isinstance(given, Items) else [given]
    cls = classes[position] if position < len(classes) else None
    if not isinstance(cls, ClassValue):
        return None
    found = names.of_class(m, cls, field)
    if isinstance(found, Result) and found.maker == "dataclasses.field":
        found = found.kwargs.get("default", found)
    return found if isinstance(found, Known) else None
