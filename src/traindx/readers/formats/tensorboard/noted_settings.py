"""Settings that a run noted in its event file: texts that are tables or JSON, and hparams."""

from __future__ import annotations

import ast
import html
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from traindx.model.metric_names import words
from traindx.model.run import Setting
from traindx.readers.formats.settings import MAX_SETTINGS, flatten, read_settings
from traindx.readers.formats.tensorboard.events import BYTES, FIXED64, VARINT, fields, varint
from traindx.readers.json_text import load

_TITLES = frozenset(
    {"args", "arguments", "hparams", "hparam", "config", "cfg", "configuration", "settings",
     "hyperparameters", "hyperparameter", "hyperparams", "parameters", "params", "options", "opt",
     "training", "flags", "namespace"}
)  # fmt: skip
_FENCE = re.compile(r"\s*(?:```\w*|<pre>|<code>)\s*(.*?)\s*(?:```|</pre>|</code>)\s*", re.DOTALL)
_CALL = re.compile(r"\s*[A-Z]\w*\(\s*\w+\s*=")
_ROW = re.compile(r"\s*\|?\s*([^|]+?)\s*\|\s*([^|]*?)\s*\|?\s*")
_RULE = re.compile(r"[\s|:-]*-[\s|:-]*")
_PAIR = re.compile(r"\s*(?:[-*+] +)?[\"'*`]*([A-Za-z_][\w./-]*)[\"'*`]*\s*[:=]\s*\S.*")
_WORDS = {"true": True, "false": False, "none": None, "null": None}


class NotedSettings:
    """The settings of a file as they come along."""

    def __init__(self, artifact: str) -> None:
        self.artifact = artifact
        self.settings: dict[tuple[str, str], Setting] = {}
        self._plain_texts: set[bytes] = set()  # tags of texts that hold no settings

    def add_text(self, tag: bytes, text: bytes, place: int) -> None:
        """Add the settings that a text lists, if that is what it does."""
        if tag in self._plain_texts or len(self.settings) >= MAX_SETTINGS:
            return
        name = tag.decode(errors="replace").removesuffix("/text_summary")
        title = words(name)
        found = dict(settings_in(text.decode(errors="replace"), bool(set(title) & _TITLES)))
        if not found:
            self._plain_texts.add(tag)
            return
        prefix = "" if set(title) <= _TITLES else name.replace("/", ".") + "."
        self._add({prefix + key: value for key, value in found.items()}, f"{name}, record {place}")

    def add_hparams(self, content: bytes, place: int) -> None:
        """Add the settings that the hparams plugin keeps."""
        try:
            self._add(dict(_hparams(content)), f"hparams, record {place}")
        except ValueError:
            return

    def _add(self, found: Mapping[str, Any], locator: str) -> None:
        for key, value in found.items():
            if len(self.settings) < MAX_SETTINGS:
                setting = Setting(key, value, self.artifact, locator)
                self.settings.setdefault((key, repr(value)), setting)


def settings_in(text: str, is_titled: bool) -> Iterator[tuple[str, Any]]:
    """Yield the settings in a text: JSON, a table, a printed Namespace, or lines of pairs.

    Lines of pairs are common in prose too, so they count only under a title that promises them.
    """
    fenced = _FENCE.fullmatch(text)
    text = html.unescape(fenced[1]) if fenced else text
    if text.lstrip().startswith("{"):
        data = load(text)
        if data is None and is_titled:
            data = _python(text.strip())
        if isinstance(data, dict):
            yield from flatten({str(k): v for k, v in data.items()})
        return
    lines = [line for line in text.splitlines() if line.strip()]
    if _CALL.match(text):
        yield from ((key, value) for key, value, _ in read_settings(text, "")[0])
    elif len(lines) > 2 and any(_RULE.fullmatch(x) and "|" in x for x in lines[1:2]):
        yield from _table(lines)
    elif is_titled and lines and sum(bool(_PAIR.fullmatch(x)) for x in lines) > 0.8 * len(lines):
        plain = "\n".join(re.sub(r"^\s*(?:[-*+] +)|[*`]", "", x) for x in lines)
        yield from ((key, value) for key, value, _ in read_settings(plain, ".ini")[0])


def _table(lines: list[str]) -> Iterator[tuple[str, Any]]:
    """A table of two columns, the first of them names."""
    rows = [_ROW.fullmatch(line) for line in lines]
    if not all(rows):
        return
    for row in rows[2:]:
        if row is not None:
            yield row[1].strip("*`"), _value(row[2].strip("*`"))


def _value(text: str) -> Any:
    return _WORDS[text.lower()] if text.lower() in _WORDS else _python(text, text)


def _python(text: str, otherwise: Any = None) -> Any:
    """Return a Python literal; nothing is evaluated."""
    if len(text) > 20_000:
        return otherwise
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return otherwise


def _hparams(content: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the settings of a session: field 3 of the plugin's data, a map in its field 1."""
    for number, kind, a, b in fields(content, 0, len(content)):
        if number != 3 or kind != BYTES:
            continue
        for inner, wire, c, d in fields(content, a, b):
            if inner == 1 and wire == BYTES:
                yield from _entry(content, c, d)


def _entry(content: bytes, start: int, end: int) -> Iterator[tuple[str, Any]]:
    key, value = "", None
    for number, kind, a, b in fields(content, start, end):
        if number == 1 and kind == BYTES:
            key = content[a:b].decode(errors="replace")
        elif number == 2 and kind == BYTES:
            value = _any_value(content, a, b)
    if key:
        yield key, value


def _any_value(content: bytes, start: int, end: int) -> Any:
    """Return a `google.protobuf.Value`: a number, a text or a truth value."""
    for number, kind, a, b in fields(content, start, end):
        if number == 2 and kind == FIXED64:
            value = struct.unpack_from("<d", content, a)[0]
            return int(value) if value.is_integer() and abs(value) < 1e15 else value
        if number == 3 and kind == BYTES:
            return content[a:b].decode(errors="replace")
        if number == 4 and kind == VARINT:
            return bool(varint(content, a, b)[0])
    return None
