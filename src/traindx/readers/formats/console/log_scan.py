"""One pass over a log: lines sorted by kind, each kind read at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from traindx.model.run import Ints
from traindx.readers import deadline
from traindx.readers.formats.console.blocks import Blocks, LogBlock
from traindx.readers.formats.console.grammar import learn
from traindx.readers.formats.console.notes import LogNotes
from traindx.readers.formats.console.numbers import MASK, RUN, NumberLayout, Spans, collapse
from traindx.readers.formats.console.plan import NOTHING, LinePlan
from traindx.readers.formats.console.tracks import PLACE, STEP, VALUES, Ledger

MANY = 5  # lines of one shape; below this, reading them one by one costs less
MAX_KINDS = 30_000  # of lines that are learnt; text without end has no more that counts
MAX_SHAPES = 60_000
MAX_SHAPE_BYTES = 64 << 20
MAX_MARKED = 500  # lines of one kind in one block that are looked at one by one


@dataclass(slots=True)
class LineShape:
    """Lines whose digits stand at the same places."""

    plan: LinePlan
    spans: Spans
    layout: NumberLayout | None = None


class Shapes(dict[bytes, int]):
    """Numbers for the shapes of lines, in the order in which they first appear."""

    def __missing__(self, key: bytes) -> int:
        self[key] = len(self)
        return len(self) - 1


@dataclass(slots=True)
class LogScan:
    """The state of reading one log."""

    blocks: Blocks
    many: int = MANY
    signs: Sequence[re.Pattern[bytes]] = ()  # of lines that another pass has to look at
    has_signs: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    notes: LogNotes = field(default_factory=LogNotes)
    unlearnt: int = 0
    is_cut_short: bool = False  # the time was up before the end of the log
    _kinds: dict[bytes, LinePlan] = field(default_factory=dict)
    _numbered: Shapes = field(default_factory=Shapes)
    _shapes: list[LineShape] = field(default_factory=list)
    _bytes: int = 0

    def run(self) -> None:
        """Read the whole log."""
        done = 0
        for block in self.blocks:
            if done and deadline.is_over():
                self.is_cut_short, self.blocks.lines = True, done
                break
            self._read(block)
            done = self.blocks.lines
        self.notes.close()

    def append(self, later: LogScan) -> None:
        """Add what a scan of the part of the log that follows has found."""
        lines = self.blocks.lines
        now = self.ledger.clock.at(np.array([np.inf]))[0]
        self.notes.append(later.notes, lines, now)
        self.ledger.append(later.ledger, lines)
        self.blocks.lines += later.blocks.lines
        self.blocks.cut += later.blocks.cut
        self.blocks.nulls += later.blocks.nulls
        self.unlearnt += later.unlearnt
        self.is_cut_short = later.is_cut_short
        self.has_signs = self.has_signs or later.has_signs

    def forget(self) -> None:
        """Let go of what only reading on would need."""
        self._kinds.clear()
        self._numbered.clear()
        self._shapes.clear()
        self.ledger.forget()

    def _read(self, block: LogBlock) -> None:
        keys = block.text.translate(MASK).split(b"\n")
        numbers = np.fromiter(map(self._numbered.__getitem__, keys), np.int32, len(keys))
        for key in islice(self._numbered, len(self._shapes), None):
            self._shapes.append(self._shape(key))
        if len(self._shapes) < 1 << 15:
            numbers = numbers.astype(np.int16)  # which are sorted in one pass
        order = np.argsort(numbers, kind="stable")
        bounds = np.flatnonzero(np.diff(numbers[order])) + 1
        marked: list[tuple[int, LinePlan]] = []
        few: dict[LinePlan, list[int]] = {}
        for at in np.split(order, bounds):
            shape = self._shapes[numbers[at[0]]]
            plan = shape.plan
            if plan is NOTHING:
                continue
            if plan.is_marked:
                marked += [(i, plan) for i in at[:MAX_MARKED].tolist()]
                self.notes.omit(len(at) - MAX_MARKED)
            if not plan.is_counted:
                continue
            if len(at) < self.many:
                few.setdefault(plan, []).extend(at.tolist())
            else:
                self._read_many(shape, block, at)
        for plan, some in few.items():
            self._read_few(plan, block, some)
        self.ledger.settle()
        self.notes.take(marked, block, self.ledger.clock)
        self._forget()

    def _shape(self, key: bytes) -> LineShape:
        kind = collapse(key)
        self._bytes += len(key)
        plan = self._kinds.get(kind)
        if plan is None:
            if len(self._kinds) >= MAX_KINDS:
                self.unlearnt += 1
                self.has_signs = True  # perhaps; nobody looked
                return LineShape(NOTHING, ())
            plan = self._kinds[kind] = learn(kind)
            self.has_signs = self.has_signs or any(sign.search(kind) for sign in self.signs)
        spans = [m.span() for m in RUN.finditer(key)] if plan.is_counted else ()
        return LineShape(plan, spans)

    def _forget(self) -> None:
        """Let go of the shapes if there are too many; a log of free text has no end of them."""
        if len(self._shapes) > MAX_SHAPES or self._bytes > MAX_SHAPE_BYTES:
            self._numbered.clear()
            self._shapes.clear()
            self._bytes = 0

    def _read_few(self, plan: LinePlan, lines: LogBlock, at: list[int]) -> None:
        rows: dict[tuple[bytes, ...], list[list[float]]] = {}
        counters = (plan.step, plan.total, plan.epoch)
        for i in sorted(at):
            runs = RUN.findall(lines[i])
            row = [float(lines.places[i])]
            row += [np.nan if n is None else n.of(runs) for n in counters]
            row.append(np.nan)
            for made in plan.fields:
                value = made.value.of(runs)
                over = 1.0 if made.over is None else made.over.of(runs)
                row.append(value / over if over else np.nan)
            identity = tuple(runs[run] for run in plan.identity)
            rows.setdefault(identity, []).append(row)
        for identity, some in rows.items():
            self.ledger.post(plan, identity, np.array(some))

    def _read_many(self, shape: LineShape, lines: LogBlock, at: Ints) -> None:
        plan = shape.plan
        if shape.layout is None:
            shape.layout = NumberLayout(plan.numbers, shape.spans)
        starts = lines.starts[at]
        values = iter(shape.layout.read(lines.raw, starts))
        rows = np.empty((len(at), VALUES + len(plan.fields)))
        rows[:, PLACE] = lines.places[at]
        for i, counter in enumerate((plan.step, plan.total, plan.epoch, None)):
            rows[:, STEP + i] = np.nan if counter is None else next(values)
        for i, made in enumerate(plan.fields, start=VALUES):
            rows[:, i] = next(values)
            if made.over is not None:
                over = next(values)
                rows[:, i] /= np.where(over == 0.0, np.nan, over)
        for identity, some in _identities(shape, lines, starts):
            self.ledger.post(plan, identity, rows if some is None else rows[some])


def _identities(
    shape: LineShape, lines: LogBlock, starts: Ints
) -> list[tuple[tuple[bytes, ...], Ints | None]]:
    """Split lines of one shape by the digits in their names and by their rank."""
    if not shape.plan.identity:
        return [((), None)]
    columns = np.array([c for run in shape.plan.identity for c in range(*shape.spans[run])])
    digits = lines.raw[starts[:, None] + columns]
    found: list[tuple[tuple[bytes, ...], Ints | None]] = []
    left = np.arange(len(starts))
    while len(left):
        same = (digits[left] == digits[left[0]]).all(axis=1)
        start = int(starts[left[0]])
        identity = tuple(
            lines.text[start + a : start + b]
            for a, b in (shape.spans[run] for run in shape.plan.identity)
        )
        found.append((identity, None if bool(same.all()) and not found else left[same]))
        left = left[~same]
    return found
