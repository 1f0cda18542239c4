"""Numbers as positions: which runs of digits of a line make up a number, and their values.

Digits are read by column. A number of up to 15 digits is an exact whole number of float64, and so
is a power of ten up to 22; one division of the two is rounded once, exactly as `float` does it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx.model import Floats

EXACT_DIGITS = 15
EXACT_POWER = 22
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


class Columns:
    """Lines of one kind and one length as a matrix of bytes, read number by number."""

    def __init__(self, lines: Sequence[bytes], spans: Spans) -> None:
        self.count = len(lines)
        text = np.frombuffer(b"".join(lines), dtype=np.uint8)
        self.matrix: Bytes = text.reshape(self.count, -1)
        self.spans = spans

    def all_of(self, numbers: Sequence[Number]) -> list[Floats]:
        """Return the values of several numbers, each for every line."""
        columns, weights = self._weights(numbers)
        digits = self.matrix[:, columns].astype(np.float64)
        digits -= 48.0
        whole = digits @ weights
        return [self._value(n, whole[:, 2 * i : 2 * i + 2]) for i, n in enumerate(numbers)]

    def _weights(self, numbers: Sequence[Number]) -> tuple[list[int], Floats]:
        """Return the columns of the digits, and what each of them counts in which number."""
        columns: list[int] = []
        entries: list[tuple[int, int, float]] = []
        for i, number in enumerate(numbers):
            if number.special is not None:
                continue
            runs = (*number.whole, *([] if number.fraction is None else [number.fraction]))
            for target, of in ((2 * i, runs), (2 * i + 1, self._exponent_runs(number))):
                places = [c for run in of for c in range(*self.spans[run])]
                if len(places) > EXACT_DIGITS:
                    continue  # read as text
                for power, column in enumerate(reversed(places)):
                    entries.append((len(columns), target, 10.0**power))
                    columns.append(column)
        weights = np.zeros((len(columns), 2 * len(numbers)))
        for row, target, weight in entries:
            weights[row, target] = weight
        return columns, weights

    @staticmethod
    def _exponent_runs(number: Number) -> tuple[int, ...]:
        return () if number.exponent is None else (number.exponent,)

    def _value(self, number: Number, read: Floats) -> Floats:
        if number.special is not None:
            return np.full(self.count, number.special)
        decimals = 0
        if number.fraction is not None:
            decimals = self.spans[number.fraction][1] - self.spans[number.fraction][0]
        digits = decimals + sum(self.spans[i][1] - self.spans[i][0] for i in number.whole)
        if digits > EXACT_DIGITS or decimals > EXACT_POWER:
            return self._parsed(number)
        if number.exponent is None:
            value = read[:, 0] / _POWERS[decimals]
        else:
            power = (-read[:, 1] if number.is_small else read[:, 1]) - decimals
            if not bool(np.all(np.abs(power) <= EXACT_POWER)):
                return self._parsed(number)
            table = _POWERS[np.abs(power).astype(np.int64)]
            value = np.where(power < 0, read[:, 0] / table, read[:, 0] * table)
        return -value if number.is_negative else np.asarray(value)

    def _parsed(self, number: Number) -> Floats:
        """Read the numbers one by one; for those of more digits than float64 holds exactly."""
        used = [*number.whole, number.fraction, number.exponent]
        texts = {i: self.text(i) for i in used if i is not None}
        runs = [b""] * (max(texts) + 1)
        values = np.empty(self.count)
        for row in range(self.count):
            for i, column in texts.items():
                runs[i] = column[row]
            values[row] = number.of(runs)
        return values

    def text(self, run: int) -> list[bytes]:
        """Return a run of digits of every line."""
        start, end = self.spans[run]
        text = self.matrix[:, start:end].tobytes()
        width = end - start
        return [text[i : i + width] for i in range(0, len(text), width)]
