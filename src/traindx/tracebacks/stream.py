"""Everything that failed in the lines of one writer, in order, causes before what they caused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from traindx.model.run import Frame
from traindx.tracebacks import notices, patterns
from traindx.tracebacks.bare_lines import Line
from traindx.tracebacks.exception_messages import ExceptionBlock, read_message, read_nested
from traindx.tracebacks.printed_tracebacks import read_traceback

# no line without one of these starts anything; most lines of a log are done after this. All are
# plain words, for which the regular expression engine looks by their first letters.
HINT = re.compile(
    r"raceback|rror|xception|File |In \[|In\[|\.py:|Interrupt|Exit|StopI|StopA|erminat|ault|bort"
    r"|illed|Out Of|atal|llegal|loating|ssert|tack|E  |\]:|___|-- P|BackendCompiler|FailOnRe"
    r"|GuardOn|Unsupported|Empty|Full|TimeoutExpired|TrialPruned|Watchdog|return code|exitcode"
    r"|inplace operation|two devices|be multiplied|first dimension"
)
PROCESS = re.compile(r"-- Process (\d{1,6}) terminated with the following error")
IGNORED = re.compile(r"Exception ignored (?:in|on|while)\b|^--- Logging error ---")
STACKS = ("Call stack:", "Stack (most recent call last):")
QUIET_LEVELS = frozenset({"DEBUG", "INFO", "WARNING", "WARN"})
GONE_READERS = ("BrokenPipeError", "ConnectionResetError")  # the other end has left
NATIVE = ("FatalPythonError", "terminate")
LINK_GAP = 4  # lines, blank ones included, between two exceptions that belong together
LONG_AGO = -LINK_GAP - 1
CRASH_GAP = 200  # lines of native stack between a crash and the shell's word about it


@dataclass(slots=True)
class Chain:
    """Blocks that belong together, in the order in which they were read."""

    start: int
    blocks: list[ExceptionBlock] = field(default_factory=list)
    consequences: list[ExceptionBlock] = field(
        default_factory=list
    )  # children that torchrun stopped

    def ordered(self) -> list[ExceptionBlock]:
        """Return causes before what wraps or handles them, and before what they brought about."""
        done: list[ExceptionBlock] = []
        waiting: list[ExceptionBlock] = []
        for block in self.blocks:
            while waiting and waiting[-1].depth >= block.depth:
                done.append(waiting.pop())
            (waiting if block.is_wrapper else done).append(block)
        return done + waiting[::-1] + self.consequences


@dataclass(slots=True)
class Stream:
    """A walk over the lines of one writer."""

    lines: Sequence[Line]
    chains: list[Chain] = field(default_factory=list)
    at: int = 0
    began: int = 0  # where the current step did
    ignored: int = LONG_AGO  # where Python last said it ignores an exception
    linked: int = LONG_AGO  # where the text last said that two exceptions belong together
    nested: int = 0
    caught: str = ""
    rank: int | None = None
    places: list[Frame] = field(default_factory=list)

    def walk(self) -> list[Chain]:
        """Read all lines."""
        while self.at < len(self.lines):
            text = self.lines[self.at].text
            if not text or HINT.search(text) is None:
                self.at += 1
                continue
            self.began = self.at
            self._step(self.lines[self.began])
            self.at = max(self.at, self.began + 1)
        return self.chains

    def _step(self, line: Line) -> None:
        text = line.text
        if patterns.is_chain(text):
            self._link()
        elif IGNORED.search(text) is not None:
            self.ignored = self.at
        elif text.startswith(STACKS):
            self._skip_indented()
        elif (process := PROCESS.match(text)) is not None:
            self._link()
            self._nest(f"Process {process[1]} terminated with the following error")
            self.rank = int(process[1])
        elif patterns.is_heading(text) or patterns.match_frame(text) is not None:
            self._read_traceback(text)
        elif notices.is_entry(self.lines, self.at):
            self._read_entry()
        elif notices.PYTEST_ERROR.match(text) is not None:
            block, self.at = notices.read_pytest(self.lines, self.at, self.places)
            self.places = []
            self._add(block)
        elif (place := notices.match_pytest_frame(text)) is not None:
            self.places.append(place)
        elif text.startswith("___"):
            self.places = []
        elif (crash := notices.read_crash(self.lines, self.at)) is not None:
            self._add_crash(crash)
        else:
            self._read_bare(line)

    def _skip_indented(self) -> None:
        self.at += 1
        while self.at < len(self.lines) and self.lines[self.at].text.startswith(" "):
            self.at += 1

    def _read_traceback(self, text: str) -> None:
        last = self._last()
        is_original = text.lstrip().startswith("Original Traceback")
        if last is not None and last.end == self.at:
            if is_original and (found := patterns.WRAPS.match(last.message)) is not None:
                self._nest(last.message)
                self.caught = found[1]
            elif not patterns.is_heading(text) and patterns.last_part(last.type).startswith("Ray"):
                self._nest(last.message)
            elif last.is_wrapper and last.type == "ChildFailedError":
                self._nest(last.message)
                self.rank = last.rank
        block, self.at = read_traceback(self.lines, self.at)
        self._add(block)

    def _read_bare(self, line: Line) -> None:
        is_inside = line.depth > 0
        if (line.indent and not is_inside) or line.level in QUIET_LEVELS:
            self._read_quoted(line)
            return
        found = patterns.match_bare(line.text)
        if found is None:
            self._read_quoted(line)
            return
        last = self._last()
        if last is not None and last.end == self.at and last.message.endswith("raised:"):
            self._nest(last.message)
        message, end = read_message(self.lines, self.at, found[1], 0, False)
        self.at = end
        self._add(
            ExceptionBlock(
                found[0], message, line.number, line.number, end, (), line.rank, line.depth
            )
        )

    def _read_quoted(self, line: Line) -> None:
        """Add an error that a sentence quotes."""
        last = self._last()
        is_said = last is not None and self.at < last.end + LINK_GAP
        if is_said:
            return
        found = patterns.match_quoted(line.text, is_quiet=line.level in QUIET_LEVELS)
        if found is None:
            return
        self._add(ExceptionBlock(*found, line.number, line.number, self.at + 1, (), line.rank))

    def _read_entry(self) -> None:
        """Add a child of torchrun's summary to the launcher's exception, or in its place."""
        block = notices.read_entry(self.lines, self.at)
        self.at = block.end
        last = self._last()
        if last is None or patterns.last_part(last.type) != "ChildFailedError":
            self._add(block)
            return
        block.frames = last.frames
        chain = self.chains[-1]
        if last.type != "ChildFailedError":
            chain.blocks.pop()
        if "Root Cause" in self.lines[self.began - 1].text:
            chain.consequences.extend(chain.blocks)
            chain.blocks.clear()
        chain.blocks.append(block)

    def _link(self) -> None:
        """Take what follows as one with the block just above, or if that is lost as a new chain."""
        last = self._last()
        self.linked = self.at
        if self.at - self.ignored <= LINK_GAP:
            self.ignored = self.at
        elif last is None or self.at - last.end > LINK_GAP:
            self.chains.append(Chain(self.lines[self.at].number))

    def _nest(self, message: str) -> None:
        """Take what follows as the origin of the last block."""
        last = self._last()
        if last is not None:
            last.is_wrapper = True
            last.message = last.message or message
            self.nested, self.caught, self.linked = last.depth + 1, "", self.at

    def _last(self) -> ExceptionBlock | None:
        return self.chains[-1].blocks[-1] if self.chains and self.chains[-1].blocks else None

    def _add_crash(self, block: ExceptionBlock) -> None:
        self.at = block.end
        last = self._last()
        is_known = (
            last is not None
            and (last.type in NATIVE or "::" in last.type)
            and block.line - last.line < CRASH_GAP
            and block.type in ("SegmentationFault", "Aborted")
        )
        if not is_known:
            self._add(block)

    def _add(self, block: ExceptionBlock | None) -> None:
        if block is None:
            return
        block.type, block.message = read_nested(block.message) or (block.type, block.message)
        if patterns.last_part(block.type) == "ChildFailedError":  # the same, at more length
            self.chains = [c for c in self.chains if not notices.is_gone(c.blocks)]
        if self.began - self.ignored <= LINK_GAP or _is_ignored(block):
            self.ignored, self.linked = block.end, LONG_AGO
            return
        if not block.type and self.chains and notices.is_gone(self.chains[-1].blocks):
            return  # of the launcher's own traceback, cut off: its word on the process came first
        is_member = block.depth > 1 and self._last() is not None
        is_linked = bool(self.chains) and self.began - self.linked <= LINK_GAP
        if not is_linked and not is_member:
            self.nested, self.rank = 0, None
            self.chains.append(Chain(block.start))
        block.depth += self.nested
        block.rank = self.rank if block.rank is None else block.rank
        block.is_wrapper |= patterns.last_part(block.type).endswith("ExceptionGroup")
        self.chains[-1].blocks.append(block)
        if self.caught and patterns.last_part(block.type) == self.caught:
            self.nested, self.caught = max(0, self.nested - 1), ""
        self.linked = LONG_AGO


def _is_ignored(block: ExceptionBlock) -> bool:
    """Tell whether Python prints an exception and goes on: of a finaliser, of a queue's feeder."""
    first = block.frames[0] if block.frames else None
    if first is None or first.function == "__del__":
        return first is not None
    return first.function == "_feed" and patterns.last_part(block.type) in GONE_READERS


def read_stream(lines: Sequence[Line]) -> list[Chain]:
    """Return the chains of failures among the lines of one writer."""
    asserts, rest = notices.read_asserts(lines)
    return [Chain(a.line, [a]) for a in asserts] + Stream(rest).walk()
