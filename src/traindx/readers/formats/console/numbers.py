"""Numbers as positions: which runs of digits of a line make up a number, and their values.

Digits are read by column. A number of up to 15 digits is an exact whole number of float64, and so
is a power of ten up to 22; one division of the two is rounded once, exactly as `float` does it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from traindx.model.run import Floats, Ints

EXACT_DIGITS = 15
EXACT_POWER = 22
_BATCH = 512  # lines whose digits fit into the cache
_POWERS = 10.0 ** np.arange(EXACT_POWER + 1)

MASK = bytes.maketrans(b"123456789", b"000000000")
RUN = re.compile(rb"[0-9]+")
# three digits after a comma are thousands, other ones are the next of a list: keep them apart
_COLLAPSIBLE = re.compile(rb"(?<=0,)000(?![0])|0+")

Spans = Sequence[tuple[int, int]]
Bytes = NDArray[np.uint8]


def collapse(masked: bytes) -> bytes:
    """Shorten every run of masked digits to one digit, but for groups of thousands."""
    if b",000" not in masked:
        return re.sub(rb"0+", b"0", masked)
    return _COLLAPSIBLE.sub(lambda m: m[0] if m[0] == b"000" and _is_group(m) else b"0", masked)


def _is_group(match: re.Match[bytes]) -> bool:
    return match.start() >= 2 and match.string[match.start() - 2 : match.start()] == b"0,"


@dataclass(frozen=True, slots=True)
class Number:
    """A number by the runs of digits it consists of; `special` is one that has none."""

    whole: tuple[int, ...] = ()
    fraction: int | None = None
    exponent: int | None = None
    is_negative: bool = False
    is_small: bool = False  # the exponent is negative
    special: float | None = None

    @property
    def is_integer(self) -> bool:
        return self.special is None and self.fraction is None and self.exponent is None

    @property
    def digits(self) -> tuple[int, ...]:
        """The runs before and after the point."""
        return self.whole if self.fraction is None else (*self.whole, self.fraction)

    @property
    def powers(self) -> tuple[int, ...]:
        """The run of the exponent."""
        return () if self.exponent is None else (self.exponent,)

    def of(self, runs: Sequence[bytes]) -> float:
        """Return the value in a line, given its runs of digits."""
        if self.special is not None:
            return self.special
        text = b"".join([runs[i] for i in self.whole]) or b"0"
        if self.fraction is not None:
            text += b"." + runs[self.fraction]
        if self.exponent is not None:
            text += (b"e-" if self.is_small else b"e") + runs[self.exponent]
        value = float(text)
        return -value if self.is_negative else value


class NumberLayout:
    """Where in lines of one shape the digits of some numbers stand."""

    def __init__(self, numbers: Sequence[Number], spans: Spans) -> None:
        self.numbers = numbers
        self.spans = spans
        self._powers = {i: len(numbers) + k for k, i in enumerate(self._with_exponent())}
        columns: list[int] = []
        entries: list[tuple[int, int, float]] = []
        for i, number in enumerate(numbers):
            for target, runs in ((i, number.digits), (self._powers.get(i, -1), number.powers)):
                places = [c for run in runs for c in range(*spans[run])]
                if len(places) > EXACT_DIGITS:
                    continue  # read as text
                for power, column in enumerate(reversed(places)):
                    entries.append((len(columns), target, 10.0**power))
                    columns.append(column)
        self._columns = np.array(columns, dtype=np.int64)
        self._weights = np.zeros((len(columns), len(numbers) + len(self._powers)))
        for row, target, weight in entries:
            self._weights[row, target] = weight
        self._scale = np.ones(self._weights.shape[1])
        for i, number in enumerate(numbers):
            if number.fraction is not None and number.exponent is None:
                self._scale[i] = 10.0 ** min(EXACT_POWER, self._width(number.fraction))

    def _with_exponent(self) -> list[int]:
        return [i for i, number in enumerate(self.numbers) if number.exponent is not None]

    def read(self, text: Bytes, starts: Ints) -> list[Floats]:
        """Return the values of the numbers, each for all lines; they start at the given places."""
        whole = np.empty((len(starts), self._weights.shape[1]))
        if len(self._columns):
            first, last = int(self._columns.min()), int(self._columns.max()) + 1
            windows = sliding_window_view(text[first:], last - first)
            columns = self._columns - first
            for at in range(0, len(starts), _BATCH):
                digits = windows[starts[at : at + _BATCH]][:, columns].astype(np.float64)
                np.matmul(digits, self._weights, out=whole[at : at + _BATCH])
            whole -= ord("0") * self._weights.sum(axis=0)  # still whole numbers, still exact
            whole /= self._scale
        return [self._value(i, whole, text, starts) for i in range(len(self.numbers))]

    def _value(self, i: int, whole: Floats, text: Bytes, starts: Ints) -> Floats:
        number = self.numbers[i]
        if number.special is not None:
            return np.full(len(starts), number.special)
        if sum(self._width(run) for run in number.digits) > EXACT_DIGITS:
            return self._parsed(number, text, starts)
        value = whole[:, i]
        if number.exponent is not None:
            decimals = 0 if number.fraction is None else self._width(number.fraction)
            power = whole[:, self._powers[i]]
            power = (-power if number.is_small else power) - decimals
            if self._width(number.exponent) > 3 or float(np.abs(power).max()) > EXACT_POWER:
                return self._parsed(number, text, starts)
            table = _POWERS[np.abs(power).astype(np.int64)]
            value = np.where(power < 0, value / table, value * table)
        return -value if number.is_negative else value

    def _width(self, run: int) -> int:
        return self.spans[run][1] - self.spans[run][0]

    def _parsed(self, number: Number, text: Bytes, starts: Ints) -> Floats:
        """Read the numbers as text; for those of more digits than float64 holds exactly."""
        used = (*number.digits, *number.powers)
        columns = np.arange(self.spans[used[0]][0], self.spans[used[-1]][1])
        texts = text[starts[:, None] + columns]
        if len(number.whole) > 1:  # without the commas between thousands
            texts = np.ascontiguousarray(texts[:, texts[0] != ord(",")])
        if number.fraction is not None:  # a decimal comma
            texts[:, self.spans[number.fraction][0] - 1 - columns[0]] = ord(".")
        # numpy reads a text as `float` does
        values: Floats = texts.view(f"S{texts.shape[1]}").ravel().astype(np.float64)
        return -values if number.is_negative else values
