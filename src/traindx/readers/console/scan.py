"""One pass over a log: lines sorted by kind, each kind read at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from traindx.model import Floats, Ints
from traindx.readers.console.blocks import Block, Blocks
from traindx.readers.console.grammar import learn
from traindx.readers.console.notes import Notes
from traindx.readers.console.numbers import MASK, RUN, Columns, Spans, collapse
from traindx.readers.console.plan import NOTHING, Plan
from traindx.readers.console.tracks import Ledger

MANY = 16  # lines of one shape; below this, reading them one by one costs less
MAX_KINDS = 30_000  # of lines that are learnt; text without end has no more that counts
MAX_SHAPES = 60_000
MAX_MARKED = 500  # lines of one kind in one block that are looked at one by one

Shape = tuple[Plan, Spans]


@dataclass(slots=True)
class Scan:
    """The state of reading one log."""

    blocks: Blocks
    many: int = MANY
    ledger: Ledger = field(default_factory=Ledger)
    notes: Notes = field(default_factory=Notes)
    has_text: bool = False
    unlearnt: int = 0
    _kinds: dict[bytes, Plan] = field(default_factory=dict)
    _shapes: dict[bytes, Shape] = field(default_factory=dict)

    def run(self) -> None:
        """Read the whole log."""
        for block in self.blocks:
            self._read(block)
        self.notes.close()

    def _read(self, block: Block) -> None:
        lines = block.text.split(b"\n")
        groups: defaultdict[bytes, list[int]] = defaultdict(list)
        for i, key in enumerate(block.text.translate(MASK).split(b"\n")):
            groups[key].append(i)
        self.has_text = self.has_text or len(groups) > 1 or any(k.strip() for k in groups)
        marked: list[tuple[int, Plan]] = []
        few: dict[Plan, list[int]] = {}
        for key, at in groups.items():
            plan, spans = self._shapes.get(key) or self._shape(key)
            if plan is NOTHING:
                continue
            if plan.is_marked:
                marked += [(i, plan) for i in at[:MAX_MARKED]]
                self.notes.omit(len(at) - MAX_MARKED)
            if not plan.is_counted:
                continue
            if len(at) < self.many:
                few.setdefault(plan, []).extend(at)
            else:
                self._read_many(plan, Columns([lines[i] for i in at], spans), block.places[at])
        for plan, at in few.items():
            self._read_few(plan, [lines[i] for i in at], block.places[at])
        self.ledger.settle()
        self.notes.take(marked, lines, block.places, self.ledger.clock)

    def _shape(self, key: bytes) -> Shape:
        kind = collapse(key)
        plan = self._kinds.get(kind)
        if plan is None:
            if len(self._kinds) >= MAX_KINDS:
                self.unlearnt += 1
                return NOTHING, ()
            plan = self._kinds[kind] = learn(kind)
        spans = [m.span() for m in RUN.finditer(key)] if plan.is_counted else []
        if len(self._shapes) >= MAX_SHAPES:
            self._shapes.clear()
        self._shapes[key] = (plan, spans)
        return plan, spans

    def _read_few(self, plan: Plan, lines: Iterable[bytes], places: Floats) -> None:
        rows: dict[tuple[bytes, ...], list[list[float]]] = {}
        counters = (plan.step, plan.total, plan.epoch)
        for line, place in zip(lines, places.tolist(), strict=True):
            runs = RUN.findall(line)
            row = [float(place), *(np.nan if n is None else n.of(runs) for n in counters)]
            for made in plan.fields:
                value = made.value.of(runs)
                over = 1.0 if made.over is None else made.over.of(runs)
                row.append(value / over if over else np.nan)
            identity = tuple(runs[i] for i in plan.identity)
            rows.setdefault(identity, []).append(row)
        for identity, some in rows.items():
            self.ledger.post(plan, identity, np.array(some))

    def _read_many(self, plan: Plan, columns: Columns, places: Floats) -> None:
        values = iter(columns.all_of(plan.numbers))
        rows = np.full((columns.count, 4 + len(plan.fields)), np.nan)
        rows[:, 0] = places
        for i, counter in enumerate((plan.step, plan.total, plan.epoch)):
            if counter is not None:
                rows[:, 1 + i] = next(values)
        for i, made in enumerate(plan.fields):
            rows[:, 4 + i] = next(values)
            if made.over is not None:
                over = next(values)
                rows[:, 4 + i] /= np.where(over == 0.0, np.nan, over)
        for identity, at in self._identities(plan, columns):
            self.ledger.post(plan, identity, rows if at is None else rows[at])

    @staticmethod
    def _identities(plan: Plan, columns: Columns) -> list[tuple[tuple[bytes, ...], Ints | None]]:
        """Split lines of one kind by the digits in their names and by their rank."""
        if not plan.identity:
            return [((), None)]
        texts = list(zip(*(columns.text(run) for run in plan.identity), strict=True))
        if texts.count(texts[0]) == len(texts):
            return [(texts[0], None)]
        found: dict[tuple[bytes, ...], list[int]] = {}
        for i, identity in enumerate(texts):
            found.setdefault(identity, []).append(i)
        return [(identity, np.array(at, dtype=np.int64)) for identity, at in found.items()]
