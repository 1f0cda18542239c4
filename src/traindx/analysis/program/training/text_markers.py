"""Texts that a program puts together, and markers that it looks for in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import FunctionValue, Result, Value, constant

SEARCHES = frozenset({".find", ".index", ".rfind", ".partition", ".rpartition", ".split"})
KEEPS = frozenset({".strip", ".rstrip", ".lstrip"})
HOLE = re.compile(r"\{[^{}]*\}")
# what marks a turn of a conversation, and is no word of the data
MARKER = re.compile(r"###|<\||\[/?INST\]|^\s*[A-Z][\w ]*:\s*$|</?\w+>|<<")
SHORTEST = 2  # pieces: a template has text around what it is filled with


@dataclass(frozen=True, slots=True, eq=False)
class MissingMarker:
    """A marker that is looked for in a text that never holds it."""

    at: ProgramEvent
    marker: str


def missing_markers(events: Iterable[ProgramEvent]) -> Iterator[MissingMarker]:
    """Yield the searches of a marker in a template's text in which it does not stand."""
    every = list(events)
    for event in every:
        if event.name in SEARCHES and event.receiver is not None and event.args:
            marker, pieces = constant(event.args[0]), pieces_of(event.receiver)
        elif event.name.endswith("DataCollatorForCompletionOnlyLM"):
            marker = constant(event.argument("response_template", 0))
            pieces = _formatted(every)
        else:
            continue
        if not isinstance(marker, str) or not MARKER.search(marker) or pieces is None:
            continue
        if len(pieces) >= SHORTEST and not any(marker.strip() in piece for piece in pieces):
            yield MissingMarker(event, marker)


def pieces_of(value: Value, depth: int = 8) -> list[str] | None:
    """Return what of a text is written down, around its holes; None where that is not known."""
    text = constant(value)
    if isinstance(text, str):
        return [text]
    if not isinstance(value, Result) or depth == 0:
        return None
    if value.maker in KEEPS and value.receiver is not None:
        return pieces_of(value.receiver, depth - 1)
    if value.maker == ".format" and value.receiver is not None:
        template = constant(value.receiver)
        filled = [t for v in (*value.args, *value.kwargs.values())
                  if isinstance(t := constant(v), str)]  # fmt: skip
        return [*HOLE.split(template), *filled] if isinstance(template, str) else None
    if value.maker in ("operator.add", "str.format"):
        found = [pieces_of(v, depth - 1) for v in value.args]
        known = [piece for f in found if f is not None for piece in f]
        return known or None
    return None


def _formatted(events: list[ProgramEvent]) -> list[str] | None:
    """Return what of texts is written down by the function that a trainer formats rows with."""
    given = (e.kwargs.get("formatting_func") for e in events)
    function = next((f for f in given if isinstance(f, FunctionValue)), None)
    if function is None:
        return None
    made = [
        v for e in events for v in (e.result, *e.args, *e.kwargs.values())
        if isinstance(v, Result) and v.maker in (".format", "str.format", "operator.add")
    ]  # fmt: skip
    found = [pieces_of(v) for v in made]
    return [piece for f in found if f is not None for piece in f] or None
