"""An exception's message: which lines belong to it, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traindx.model.run import Frame
from traindx.tracebacks import patterns
from traindx.tracebacks.bare_lines import Line

MAX_MESSAGE_CHARS = 20_000  # a state_dict error of a large model fills it; more helps nobody
MAX_FLUSH_LINES = 60  # a message's unindented lines; past that it is the log that goes on
MAX_BLANKS = 3
USER_CODE = "from user code:"
TRACED = "in user code:"  # of Keras and tf.function
LISTS = "Error(s) in loading state_dict"  # goes on for as many lines as there are tensors


@dataclass(slots=True)
class ExceptionBlock:
    """One exception with its place in a stream."""

    type: str
    message: str
    start: int
    line: int
    end: int
    frames: tuple[Frame, ...] = ()
    rank: int | None = None
    depth: int = 0
    is_wrapper: bool = False


def read_message(
    lines: Sequence[Line], at: int, first: str, indent: int, is_headed: bool
) -> tuple[str, int]:
    """Return an exception's whole message and the index of the first line after it."""
    final, parts, size, flush = lines[at], [first], len(first), 0
    # where each line has a level of its own, the next line of that level is another message
    is_whole = first.startswith(TRACED)
    is_free = (is_headed or first.startswith(LISTS)) and not final.level
    is_quoting = False  # the compiler quotes frames of the code that it could not compile
    at += 1
    while at < len(lines):
        line = lines[at]
        if not line.text:
            is_over = not _goes_on(lines, at, indent, final, is_headed)
            if is_over and not (is_whole and _is_indented(lines, at, indent)):
                break
        elif _ends_message(line, final, indent) and not (
            (is_quoting or is_whole) and _is_frame(line)
        ):
            break
        elif line.indent <= indent and not patterns.PARAGRAPH.match(line.text, line.indent):
            flush += 1
            if not is_free or flush > MAX_FLUSH_LINES or _introduces(lines, at):
                break
        is_quoting = is_quoting or line.text.startswith(USER_CODE)
        if size < MAX_MESSAGE_CHARS:
            parts.append(line.text[min(indent, line.indent) :])
            size += len(parts[-1]) + 1
        at += 1
    message = "\n".join(parts).strip()
    return (message if len(message) <= MAX_MESSAGE_CHARS else _cut(message)), at


def read_nested(message: str) -> tuple[str, str] | None:
    """Return the error that TensorFlow reports from inside of a traced function, at its end."""
    if not message.startswith(TRACED):
        return None
    for text in reversed(message.split("\n")):
        found = patterns.match_exception(text.strip())
        if found is not None and found[1] and patterns.is_exception_name(found[0]):
            return found
    return None


def _cut(message: str) -> str:
    return message[: MAX_MESSAGE_CHARS - 1] + "…"


def _introduces(lines: Sequence[Line], at: int) -> bool:
    """Tell whether a line announces the traceback below it: ``Process SpawnProcess-1:``."""
    return at + 1 < len(lines) and lines[at + 1].text.lstrip().startswith(patterns.HEADING)


def _goes_on(lines: Sequence[Line], at: int, indent: int, final: Line, is_headed: bool) -> bool:
    """Tell whether a message goes on after a blank line."""
    for line in lines[at + 1 : at + 1 + MAX_BLANKS]:
        if line.text:
            if _ends_message(line, final, indent):
                return False
            is_known = patterns.PARAGRAPH.match(line.text, line.indent) is not None
            return is_known or (is_headed and line.indent > indent)
    return False


def _is_indented(lines: Sequence[Line], at: int, indent: int) -> bool:
    """Tell whether the next line that is not blank is indented."""
    following = (line for line in lines[at : at + 1 + MAX_BLANKS] if line.text)
    return next((line.indent > indent for line in following), False)


def _ends_message(line: Line, final: Line, indent: int) -> bool:
    text = line.text
    if line.level is not None and (final.level is None or line.level != final.level):
        return True
    if line.depth != final.depth or patterns.is_heading(text) or patterns.is_chain(text):
        return True
    if line.indent <= indent and patterns.match_bare(text.strip()) is not None:
        return True
    if patterns.STOP.match(text, line.indent) is not None:
        return True
    if patterns.match_death(text) is not None:
        return True
    return _is_frame(line)


def _is_frame(line: Line) -> bool:
    return patterns.match_frame(line.text) is not None
