"""JSON that may be cut off or damaged: what can be parsed, and where its records stand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traindx.errors import UnreadableArtifact

MAX_ATTEMPTS = 20_000
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},"]')
_SPACE = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def load(text: str) -> Any:
    """Return what a JSON text says, or None if it is damaged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def begins_as_json(text: str) -> bool:
    """Tell whether a text is JSON as far as it goes; a log that begins with ``[2024`` is not."""
    try:
        _, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        # the head of a longer file breaks off near its end, or within a string
        return error.pos > 0.5 * len(text) or error.msg.startswith("Unterminated")
    except (RecursionError, ValueError):
        return True
    beside = text[end:].partition("\n")[0].strip()
    return not beside or beside[0] in "{,"  # `[80746] [rank0]: Watchdog caught` numbers its lines


def parse(text: str, path: Path) -> tuple[Any, list[str]]:
    """Return the document, or as much of a damaged one as there is, and what was wrong."""
    try:
        return json.loads(text), []
    except RecursionError:
        why, remedy = "it is nested too deeply", "the log or the metrics of the run"
        raise UnreadableArtifact(str(path), why, remedy) from None
    except json.JSONDecodeError as error:
        position, place, is_several = error.pos, f"line {error.lineno}", error.msg == "Extra data"
    except ValueError:  # an integer of thousands of digits
        return json.loads(text, parse_int=float), []
    if is_several:
        documents = list(_objects(text, 0))
        return documents, []
    document = _repair(text, position)
    if not document:
        raise UnreadableArtifact(str(path), "it is no JSON", "a whole copy of the file", place)
    records = _record_list(document)
    if records is not None:
        records += list(_objects(text, position))
    return document, [f"it is damaged in {place}; only what is whole was read"]


def _repair(text: str, position: int) -> Any:
    """Parse what stands before the damage: cut at the last whole value and close what is open."""
    closers: list[str] = []
    end, closing = 0, ""
    for token in _TOKEN.finditer(text, 0, position):
        mark = token[0]
        if mark in "[{":
            closers.append("]" if mark == "[" else "}")
        elif mark in "]}":
            if closers:
                closers.pop()
        elif mark == ",":
            end, closing = token.start(), "".join(reversed(closers))
        elif mark == '"':  # a string without an end
            break
    return load(text[:end] + closing) if end else None


def _record_list(document: Any) -> list[Any] | None:
    """Return the first list of records in a document."""
    waiting = [document]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, list) and node and isinstance(node[0], dict):
            return node
        if isinstance(node, dict):
            waiting += [v for v in node.values() if isinstance(v, (dict, list))]
    return None


def _objects(text: str, position: int) -> Iterator[Any]:
    """Yield every whole object from a position on, stepping over what is none."""
    for _ in range(MAX_ATTEMPTS):
        position = text.find("{", position)
        if position < 0:
            return
        try:
            value, position = _DECODER.raw_decode(text, position)
            yield value
        except (ValueError, RecursionError):
            position += 1


def locate(text: str, key: str, count: int, after: int) -> tuple[list[int], int] | None:
    """Return the lines of the records in the list of that key, and where the list ends."""
    opening = re.compile(rf'"{re.escape(key)}"\s*:\s*\[' if key else r"\[").search(text, after)
    if opening is None:
        return None
    position, seen = opening.end(), 0
    line = 1
    places = []
    for _ in range(count):
        space = _SPACE.match(text, position)
        position = space.end() if space else position
        line += text.count("\n", seen, position)
        seen = position
        places.append(line)
        try:
            _, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
    return places, position
