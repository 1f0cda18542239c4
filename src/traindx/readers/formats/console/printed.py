"""Settings that a run printed before it began to train."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traindx.model.metric_names import canonical, is_measured, kind_of
from traindx.model.run import Setting
from traindx.readers.formats.console.blocks import separate
from traindx.readers.text import decode

MAX_BYTES = 1 << 18
MAX_LINES = 3000
MAX_SETTINGS = 1000
MAX_VALUE = 200

_PREFIX = re.compile(
    r"^(?:\x1b\[[0-9;]*m|\s|[\[(]?\d{4}[-/]\d\d[-/]\d\d[T ]?[\d:.,]*Z?[\])]?"
    r"|[\[(]?\d\d?:\d\d:\d\d[.,\d]*[\])]?|[\[(]?(?:INFO|DEBUG|WARNING|I)[\])]?(?=[\s:|\]-])"
    r"|INFO:[\w.]+:|\[[\w./:-]*\](?=\s)|[\w.]+\.py:\d+|[|>*•:-](?=\s))+"
)
_KEY = r"[A-Za-z_][\w./-]*"
_SINGLE = re.compile(
    rf"""(?:--)?["']?({_KEY}(?: [A-Za-z]\w*){{0,3}})["']?\s*"""
    r"(?:=|:|\.{3,}|\s\|\s)\s*(\S.*?),?\s*\|?$"
)
_SEVERAL = re.compile(rf"(?<![\w.'\"])({_KEY})\s?[=]\s?([^\s,;|()\[\]{{}}]+)")
_LISTED = re.compile(rf"({_KEY}):\s?(\S+)")
_QUOTED = re.compile(
    rf"""["']({_KEY})["']\s*:\s*("[^"]{{0,100}}"|'[^']{{0,100}}'|[^\s,{{}}\[\]]+)"""
)
_CALL = re.compile(r"\b(?:Namespace|\w*(?:Config|Arguments|Args|Params|Settings|Options))\s?\(")
_ARGUMENT = re.compile(
    r"(?<![\w.])([A-Za-z_]\w*)=('[^']*'|\"[^\"]*\"|\[[^\[\]]*\]|\([^()]*\)|[^\s,()]+)"
)
_WORDS = {"true": True, "false": False, "none": None, "null": None, "yes": True, "no": False}
_SCALAR = re.compile(
    r"[\w.+/:@-]+(?: [\w.+-]+){0,2}|\[[\w\s.,'\"+-]*\]|\([\w\s.,'\"+-]*\)|'[^']*'|\"[^\"]*\""
)
_NEVER = frozenset(
    {"note", "warning", "error", "info", "usage", "file", "http", "https", "traceback", "time"}
)


def head_of(path: Path) -> list[str]:
    """Return the first lines of a log."""
    with path.open("rb") as file:
        text = decode(separate(file.read(MAX_BYTES)))
    lines = text.replace("\r\n", "\n").split("\n")[:MAX_LINES]
    return [line.rsplit("\r", 1)[-1] for line in lines]


def settings_of(path: Path, before: float) -> tuple[Setting, ...]:
    """Return what was printed as `key: value` before a line, each setting once."""
    found: dict[str, Setting] = {}
    for number, line in enumerate(head_of(path), start=1):
        if number >= before or len(found) >= MAX_SETTINGS:
            break
        for key, value in _pairs(line[:20_000]):
            if key not in found and len(value) <= MAX_VALUE:
                found[key] = Setting(key, _value(value), str(path), f"line {number}")
    return tuple(found.values())


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    call = _CALL.search(line)
    if call is not None:
        yield from _ARGUMENT.findall(line[call.end() :])
        return
    text = _PREFIX.sub("", line).strip()
    if text.startswith("{") and text.count(":") > 1:
        yield from _QUOTED.findall(text)
        return
    single = _SINGLE.fullmatch(text)
    if single is not None and _is_setting(single[1], single[2]):
        yield single[1].strip().replace(" ", "_"), single[2]
        return
    listed = [_LISTED.fullmatch(part.strip()) for part in text.split(",")]
    if len(listed) > 1 and all(listed):
        yield from ((m[1], m[2]) for m in listed if m is not None and _is_setting(m[1], m[2]))
        return
    several = _SEVERAL.findall(text)
    if len(several) > 1 or (several and text.startswith(several[0][0])):
        yield from ((k, v) for k, v in several if _is_setting(k, v))


def _is_setting(key: str, value: str) -> bool:
    if _SCALAR.fullmatch(value.strip()) is None or key.lower().split(" ")[0] in _NEVER:
        return False
    name = canonical(key.replace(" ", "_"))
    # a rate may be set; a loss, an accuracy or a time is measured
    is_result = (is_measured(name) and kind_of(name) != "lr") or name.startswith(
        ("time/", "memory/")
    )
    return not (
        is_result and re.fullmatch(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?%?|nan|inf", value.strip())
    )


def _value(text: str) -> Any:
    text = text.strip().rstrip(",;")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text.strip("'\"")
    return value if isinstance(value, (bool, int, float, str, list, tuple)) else text
