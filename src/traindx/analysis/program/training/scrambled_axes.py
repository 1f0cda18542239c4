"""Reshapes that should have been transposes: the sizes trade places, the numbers stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.shapes.sizes import Dim, Size, is_surely_different, product
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.operations import name_of_operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

RESHAPES = frozenset({"view", "reshape", "numpy.reshape", "view_as", "reshape_as"})
# numbers without an order: it does not matter which goes where
DRAWN = frozenset({"rand", "randn", "randint", "normal", "standard_normal", "random", "uniform",
                   "arange", "zeros", "ones", "empty", "full", "integers"})  # fmt: skip
CHANNELS = (3, 4, 1)
IMAGE = 3  # dimensions of one image: rows, columns and channels


@dataclass(frozen=True, slots=True, eq=False)
class ScrambledReshape:
    """A reshape after which the numbers of one axis stand in another."""

    event: ProgramEvent
    before: tuple[Dim, ...]
    after: tuple[Dim, ...]

    @property
    def is_of_images(self) -> bool:
        """Tell whether channels move from behind an image to its front, or back."""
        is_batch = len(self.before) == IMAGE + 1 and self.before[0] == self.after[0]
        first, second = (sizes[1:] if is_batch else sizes for sizes in (self.before, self.after))
        moved = {(first[-1], second[0]), (first[0], second[-1])}
        return len(first) == IMAGE and any((c, c) in moved for c in CHANNELS)

    @property
    def shapes(self) -> tuple[str, str]:
        """Both shapes, with `B` for a batch and `?` for a size that is not known."""
        texts = (", ".join(map(str, sizes)) for sizes in (self.before, self.after))
        first, second = (re.sub(r"[?~]\d+", "?", re.sub(r"B\d+", "B", t)) for t in texts)
        return f"({first})", f"({second})"


def scrambled_reshapes(story: Story) -> Iterator[ScrambledReshape]:
    """Yield the reshapes that are given the sizes of a tensor in another order."""
    for event in (*story.events, *(e for x in story.execution.examples for e in x.events)):
        is_call = event.act is EventForm.CALL and not event.is_own
        if not is_call or name_of_operation(event.result) not in RESHAPES:
            continue
        operation = operation_of(event.result)
        given = operation.operands[0] if operation is not None and operation.operands else None
        sizes = _sizes(story, given), _sizes(story, event.result)
        if given is None or _is_drawn(given) or is_test_file(event.module):
            continue
        before, after = sizes
        if before and after and (_is_permuted(before, after) or _is_cut_across(before, after)):
            yield ScrambledReshape(event, before, after)


def _sizes(story: Story, value: Value | None) -> tuple[Dim, ...] | None:
    shape = story.shapes.shape(value)
    return None if shape is None or shape.is_open else shape.sizes


def _is_drawn(value: Value) -> bool:
    made = name_of_operation(value) if isinstance(value, Result) else None
    return made is not None and made.rsplit(".", 1)[-1] in DRAWN


def _is_permuted(before: tuple[Dim, ...], after: tuple[Dim, ...]) -> bool:
    """Tell whether the same sizes, of which some are not 1, stand in another order."""
    first, second = ([s for s in sizes if s != 1] for sizes in (before, after))
    return first != second and sorted(map(str, first)) == sorted(map(str, second))


def _is_cut_across(before: tuple[Dim, ...], after: tuple[Dim, ...]) -> bool:
    """Tell whether an axis of unknown length is kept, behind another number of rows than before.

    `(2, B, H)` viewed as `(B, 2 H)` puts halves of two different examples into one row.
    """
    for size in before:
        is_open = isinstance(size, Size) and len(size.terms) == 1 and len(size.terms[0][0]) == 1
        if not is_open or before.count(size) != 1 or after.count(size) != 1:
            continue
        ahead, now = before[: before.index(size)], after[: after.index(size)]
        is_known = _symbols(now) <= _symbols(before)
        if is_known and is_surely_different(product(ahead), product(now)):
            return True
    return False


def _symbols(sizes: tuple[Dim, ...]) -> set[str]:
    """Return the unknown lengths that sizes are made of."""
    return {name for s in sizes if isinstance(s, Size) for term, _ in s.terms for name in term}
