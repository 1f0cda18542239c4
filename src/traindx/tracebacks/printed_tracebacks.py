"""Tracebacks as Python, IPython and rich print them, whole or cut off."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from traindx.model.run import Frame
from traindx.tracebacks import patterns
from traindx.tracebacks.bare_lines import Line
from traindx.tracebacks.exception_messages import USER_CODE, ExceptionBlock, read_message

FIRST_FRAMES = 20
LAST_FRAMES = 180
MAX_BLANKS = 3  # between two frames; more is another matter
LOOK_AHEAD = 8  # lines of other output that may fall between two frames
CODE_PREFIXES = ("[Previous line repeated", "[... skipping", "...<")


@dataclass(slots=True)
class Frames:
    """The frames read so far; of very many, the first and the last."""

    first: list[Frame] = field(default_factory=list)
    last: deque[Frame] = field(default_factory=lambda: deque(maxlen=LAST_FRAMES))
    open: Frame | None = None

    def add(self, frame: Frame) -> None:
        self.close()
        self.open = frame

    def add_code(self, text: str) -> None:
        code = text.strip()
        is_code = not patterns.is_marks(code) and not code.startswith(CODE_PREFIXES)
        if self.open is not None and not self.open.code and is_code:
            self.open = replace(self.open, code=code)

    def point(self, line: int, code: str) -> None:
        """Take what IPython's arrow points at."""
        if self.open is not None:
            at = self.open.line or line
            self.open = replace(self.open, line=at, code=code if at == line else self.open.code)

    def close(self) -> None:
        if self.open is not None:
            (self.first if len(self.first) < FIRST_FRAMES else self.last).append(self.open)
            self.open = None

    def all(self) -> tuple[Frame, ...]:
        self.close()
        return (*self.first, *self.last)

    def __bool__(self) -> bool:
        return self.open is not None or bool(self.first)


def read_traceback(lines: Sequence[Line], at: int) -> tuple[ExceptionBlock | None, int]:
    """Return the traceback whose heading, or if that is lost whose first frame, is at a line."""
    head = lines[at]
    is_headed = patterns.is_heading(head.text)
    named = patterns.IPYTHON_HEADING.match(head.text.strip())
    body = Body(
        lines,
        indent=_indent(head, is_headed),
        expected=named[1] if named else "",
    )
    end = body.read(at + 1 if is_headed else at)
    frames = body.frames.all()
    if body.found is None:
        is_cut = bool(frames) and (is_headed or end >= len(lines))
        if not is_cut and not body.expected:
            return None, max(end, at + 1)
        last = lines[max(at, body.last)]
        raised = patterns.match_raised(frames[-1].code) if frames and not body.expected else None
        name, said = raised or (body.expected, "")
        cut = ExceptionBlock(name, said, head.number, last.number, max(end, at + 1), frames)
        return _placed(cut, head), cut.end
    final = lines[end]
    message, after = read_message(lines, end, body.found[1], body.indent, is_headed)
    frames += _quoted_frames(message)
    block = ExceptionBlock(body.found[0], message, head.number, final.number, after, frames)
    return _placed(block, head), after


def _quoted_frames(message: str) -> tuple[Frame, ...]:
    """Return the frames of the code that a compiler was reading: deeper than any that ran."""
    _, _, quoted = message.partition(USER_CODE)
    frames = Frames()
    for text in quoted.splitlines():
        frame = patterns.match_frame(text)
        if frame is not None:
            frames.add(frame)
        elif not text:
            frames.close()
        else:
            frames.add_code(text)
    return frames.all()


def _placed(block: ExceptionBlock, head: Line) -> ExceptionBlock:
    block.rank, block.depth = head.rank, head.depth
    return block


def _indent(head: Line, is_headed: bool) -> int:
    """Return how far the block is indented; a heading after a progress bar tells nothing."""
    if not is_headed:
        return max(0, head.indent - 2)
    return 0 if "%|" in head.text else head.indent


@dataclass(slots=True)
class Body:
    """The lines between a heading and the exception they lead to."""

    lines: Sequence[Line]
    indent: int
    expected: str
    frames: Frames = field(default_factory=Frames)
    found: tuple[str, str] | None = None
    is_stamped: bool = False
    is_flat: bool = False
    is_code_next: bool = False
    blanks: int = 0
    last: int = 0  # where the last line that belongs to it is

    def read(self, at: int) -> int:
        """Read up to the exception's line and return its index, or that of the first line after."""
        while at < len(self.lines):
            line = self.lines[at]
            if not line.text:
                self.blanks += 1
                if self.blanks > MAX_BLANKS:
                    return at
            elif patterns.is_heading(line.text) or patterns.is_chain(line.text):
                return at
            elif not self._take(line):
                self.found = self._final(at)
                if self.found is not None or not self._resumes(at):
                    return at
            else:
                self.last = at
            at += 1
        return at

    def _take(self, line: Line) -> bool:
        """Take a frame or something that belongs to one."""
        text = line.text
        frame = patterns.match_frame(text)
        if frame is None and self.expected:
            frame = patterns.match_named_frame(text)
        if frame is not None:
            if not self.frames:
                self.is_stamped = line.level is not None
            self.is_flat = line.indent <= self.indent
            self.is_code_next, self.blanks = True, 0
            self.frames.add(frame)
            return True
        if line.level and not self.is_stamped:
            return False
        return self._take_code(line)

    def _take_code(self, line: Line) -> bool:
        text = line.text
        if (arrow := patterns.ARROW.match(text)) is not None:
            self.frames.point(int(arrow[1]), (arrow[2] or "").strip())
        elif text.startswith(("│", "╰")):
            if (arrow := patterns.RICH_ARROW.match(text)) is not None:
                self.frames.add_code(arrow[1].strip("│ "))
        elif line.indent > self.indent or (self.expected and text[0].isdigit()):
            if not self.expected:
                self.frames.add_code(text)
        elif self.is_flat and (self.is_code_next or patterns.is_marks(text)):
            exception = patterns.match_exception(text.strip())
            if exception is not None and patterns.is_exception_name(exception[0]):
                return False
            self.frames.add_code(text)
        else:
            return False
        self.is_code_next = False
        self.blanks = 0
        return True

    def _final(self, at: int) -> tuple[str, str] | None:
        """Return the exception that a line names, if that is what the line does."""
        line = self.lines[at]
        if line.level and not self.is_stamped:
            return None
        found = patterns.match_exception(line.text.strip())
        if found is None:
            return None
        if self.expected:
            is_it = patterns.last_part(found[0]) == patterns.last_part(self.expected)
            return found if is_it else None
        if patterns.is_exception_name(found[0]):
            return found
        # `Epoch: 3` may have been printed in between; `queue.Empty` is followed by nothing more
        is_name = found[0][0].isupper() or "." in found[0]
        return found if is_name and not self._resumes(at) else None

    def _resumes(self, at: int) -> bool:
        """Tell whether the traceback goes on after a line that is not part of it."""
        for line in self.lines[at + 1 : at + 1 + LOOK_AHEAD]:
            if patterns.is_heading(line.text) or patterns.is_chain(line.text):
                return False
            if line.level and not self.is_stamped:
                continue
            if patterns.match_frame(line.text) is not None:
                return True
            if self.expected and patterns.ARROW.match(line.text) is not None:
                return True
            found = patterns.match_exception(line.text.strip())
            if found is not None and line.indent <= self.indent:
                return patterns.is_exception_name(found[0])
        return False
