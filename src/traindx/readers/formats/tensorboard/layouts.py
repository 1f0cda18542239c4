"""Scalars of many records at once: records of one layout are read as columns of bytes.

Two records that agree in every byte but those of the wall time, the step and the numbers have the
same structure, whatever it is. So one of them is parsed and the others are only compared with it.
Checksums are verified on this way too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from traindx.model.run import Floats, Ints
from traindx.readers.formats.tensorboard.checksum import Bytes, mask, masked, tables, unmask
from traindx.readers.formats.tensorboard.events import Scalar, Span, parse
from traindx.readers.formats.tensorboard.tag_tracks import Tracks
from traindx.readers.formats.tensorboard.tfrecords import RecordBlock

LONGEST = 1024  # bytes of a record that is read this way
FEW = 4  # records of one kind that are not worth the effort
PASSES = 8  # over the records that share length and width of step
_WEIGHTS = 2 * np.random.default_rng(0).integers(1 << 62, size=LONGEST // 8, dtype=np.uint64) + 1
_WALL = 9  # a record begins with the wall time: a key and eight bytes


@dataclass(frozen=True, slots=True)
class _Layout:
    scalars: tuple[Scalar, ...]
    variable: tuple[Span, ...]
    constant: tuple[Span, ...]


def gather(block: RecordBlock, tracks: Tracks, corrupt: list[int]) -> Ints:
    """Add the scalars of a block's records; return the positions of the records left to parse."""
    left = [np.flatnonzero(block.lengths > LONGEST)]
    data = np.frombuffer(block.data, dtype=np.uint8)
    short = np.flatnonzero(block.lengths <= LONGEST)
    for group in _split(short, block.lengths[short].astype(np.uint16)):
        length = int(block.lengths[group[0]])
        if len(group) < FEW or length < _WALL + 4:
            left.append(group)
            continue
        rows = sliding_window_view(data, length + 4)[block.starts[group]]
        widths = _step_widths(rows[:, : min(length, _WALL + 11)])
        for chosen in _split(np.arange(len(group)), widths):
            width = int(widths[chosen[0]])
            alike = _Alike(rows[chosen], group[chosen], width)
            if width == 255 or len(chosen) < FEW:
                left.append(group[chosen])
            else:
                left.append(alike.read(block.first, tracks, corrupt))
    return np.sort(np.concatenate(left))


def _split(items: Ints, keys: NDArray[Any]) -> Iterator[Ints]:
    """Yield the items of each key, in their order."""
    if not len(items):
        return
    if bool((keys == keys[0]).all()):
        yield items
        return
    order = np.argsort(keys, kind="stable")
    yield from np.split(items[order], np.flatnonzero(np.diff(keys[order])) + 1)


def _step_widths(heads: Bytes) -> NDArray[np.uint8]:
    """Return the bytes that each step takes; 0 if there is none, 255 if the record is unusual."""
    ends = heads[:, _WALL + 1 :] < 0x80
    widths: NDArray[np.uint8] = (np.argmax(ends, axis=1) + 1).astype(np.uint8)
    widths[~ends.any(axis=1)] = 255
    widths[heads[:, _WALL] == 0x2A] = 0
    is_odd = (heads[:, 0] != 0x09) | ((heads[:, _WALL] != 0x10) & (widths != 0))
    widths[is_odd] = 255
    return widths


class _Alike:
    """Records of one length whose steps have one width."""

    def __init__(self, rows: Bytes, positions: Ints, width: int) -> None:
        self.rows = rows  # each with its checksum at the end
        self.positions = positions
        self.length = rows.shape[1] - 4
        self.step: Span | None = (_WALL + 1, _WALL + 1 + width) if width else None
        self.body = self.step[1] if self.step else _WALL

    def read(self, first: int, tracks: Tracks, corrupt: list[int]) -> Ints:
        """Add what can be read; return the positions of the others."""
        left: list[Ints] = []
        waiting = np.arange(len(self.rows))
        for _ in range(PASSES):
            if len(waiting) < FEW:
                break
            others = [np.empty(0, dtype=np.int64)]
            for group in _split(waiting, self._hash(waiting)):
                layout = self._layout(group[0])
                if layout is None:
                    left.append(self.positions[group])
                    continue
                is_alike = self._is_alike(group, layout)
                others.append(group[~is_alike])
                self._add(group[is_alike], layout, first, tracks, corrupt)
            waiting = np.sort(np.concatenate(others))
        return np.concatenate([*left, self.positions[waiting]])

    def _hash(self, which: Ints) -> NDArray[np.uint64]:
        """Return a number that is equal for equal tags; unequal tags are told apart later."""
        row = self.rows[which[0]].tobytes()
        try:
            end = parse(row, 0, self.length).tag_end
        except ValueError:
            end = 0
        end = max(end, min(self.body + 8, self.length))
        words = -(-(end - self.body) // 8)
        padded = np.zeros((len(which), 8 * words), dtype=np.uint8)
        padded[:, : end - self.body] = self.rows[which, self.body : end]
        return np.asarray(padded.view(np.uint64) @ _WEIGHTS[:words], dtype=np.uint64)

    def _layout(self, index: int) -> _Layout | None:
        row = self.rows[index].tobytes()
        try:
            told = parse(row, 0, self.length)
        except ValueError:
            return None
        scalars = tuple(told.scalars)
        fits = told.is_plain and scalars and all(s.at >= self.body for s in scalars)
        if not fits or told.step_span != self.step:
            return None
        spans = [(1, _WALL), *([self.step] if self.step else [])]
        spans += sorted((s.at, s.at + int(s.form[-1])) for s in scalars)
        ends = [0, *(b for _, b in spans)]
        begins = [*(a for a, _ in spans), self.length]
        constant = tuple((a, b) for a, b in zip(ends, begins, strict=True) if a < b)
        return _Layout(scalars, tuple(spans), constant)

    def _is_alike(self, which: Ints, layout: _Layout) -> NDArray[np.bool_]:
        same = np.ones(len(which), dtype=bool)
        for a, b in layout.constant:
            part = self.rows[which, a:b]
            same &= (part == part[0]).all(axis=1)
        return same

    def _add(
        self, which: Ints, layout: _Layout, first: int, tracks: Tracks, corrupt: list[int]
    ) -> None:
        is_intact = self._is_intact(which, layout)
        places = self.positions[which] + first
        corrupt += places[~is_intact].tolist()
        which, places = which[is_intact], places[is_intact]
        if not len(which):
            return
        steps = self._steps(which)
        for scalar in layout.scalars:
            raw = self.rows[which, scalar.at : scalar.at + int(scalar.form[-1])]
            values = np.ascontiguousarray(raw).view(scalar.form)[:, 0].astype(np.float64)
            tracks.add(scalar.tag, "scalar", steps, values, places)

    def _steps(self, which: Ints) -> Floats:
        if self.step is None:
            return np.zeros(len(which))
        steps = np.zeros(len(which), dtype=np.uint64)
        for i, column in enumerate(range(*self.step)):
            part = (self.rows[which, column] & 0x7F).astype(np.uint64)
            steps |= part << np.uint64(7 * i)
        return steps.view(np.int64).astype(np.float64)

    def _is_intact(self, which: Ints, layout: _Layout) -> NDArray[np.bool_]:
        """Verify checksums by way of the first record, from which all differ in few bytes only."""
        rows = self.rows[which]
        stored = np.ascontiguousarray(rows[:, self.length :]).view("<u4")[:, 0]
        table = tables()
        own = unmask(masked(rows[0, : self.length].tobytes()))
        states = np.full(len(rows), own, dtype=np.uint32)
        for a, b in layout.variable:
            for column in range(a, b):
                differs = rows[:, column] ^ rows[0, column]
                states ^= table[self.length - 1 - column][differs]
        return np.asarray(mask(states) == stored)
