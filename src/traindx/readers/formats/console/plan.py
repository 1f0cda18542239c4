"""What a kind of line means: where its metrics, counters and rank stand, and what else it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traindx.readers.formats.console.numbers import Number

DIGIT = "\x01"  # stands in a name for a run of digits, which is filled in per line


@dataclass(frozen=True, slots=True)
class Field:
    """A metric of a line. `over` is what its value is divided by, as in ``9900/10000``."""

    name: str
    value: Number
    phase: str | None = None
    over: Number | None = None
    runs: tuple[int, ...] = ()  # the digits in the name
    is_percent: bool = False

    def spelled(self, digits: Sequence[bytes]) -> str:
        """Return the name with its digits."""
        name = self.name
        for run in digits:
            name = name.replace(DIGIT, run.decode("ascii"), 1)
        return name


@dataclass(frozen=True, slots=True, eq=False)
class LinePlan:
    """A kind of line."""

    template: str = ""
    fields: tuple[Field, ...] = ()
    step: Number | None = None
    total: Number | None = None
    epoch: Number | None = None
    rank: Number | None = None
    is_label: bool = False  # the step is a bare number before the line, which may be a rank
    is_bar: bool = False
    is_cell: bool = False  # a name and a number in a box; the counter stands in another line of it
    sets_clock: bool = True
    cells: int = 0  # of a row of a table, whose fields are named by their position
    heading: str | None = None  # the phase that the line announces for what follows; "" ends it
    is_ruler: bool = False  # a line of dashes
    is_header: bool = False  # it may name the columns of a table
    is_notable: bool = False  # it may be an event
    is_error: bool = False
    is_setting: bool = False

    @property
    def numbers(self) -> list[Number]:
        """Everything to read of a line: step, total, epoch, then values and their divisors."""
        counters = [n for n in (self.step, self.total, self.epoch) if n is not None]
        return counters + [n for f in self.fields for n in (f.value, f.over) if n is not None]

    @property
    def identity(self) -> tuple[int, ...]:
        """The runs of digits that decide which series a line belongs to."""
        named = tuple(run for f in self.fields for run in f.runs)
        return named + (self.rank.whole if self.rank else ())

    @property
    def is_counted(self) -> bool:
        """Whether there is a number to take from the line."""
        return bool(self.fields) or self.step is not None or self.epoch is not None

    @property
    def is_marked(self) -> bool:
        """Whether the line itself matters, apart from its numbers."""
        return (
            self.heading is not None
            or self.is_ruler
            or self.is_header
            or self.is_notable
            or self.is_error
            or self.is_setting
        )


NOTHING = LinePlan()
