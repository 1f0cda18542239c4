"""Attention over rows of which every key is masked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.facts.emptiness import empty_length
from traindx.analysis.program.training.facts.mask_polarity import (
    closes_padded_rows,
    lonely_rows,
    marks_tokens,
    random_empty_rows,
)
from traindx.analysis.program.training.layers import layer_kind
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MASKS = ("key_padding_mask", "src_key_padding_mask", "memory_key_padding_mask")
# what takes NaN out of the weights again
MENDED = frozenset({"nan_to_num", "masked_fill", "where", "isnan", "nan_to_num_"})


@dataclass(frozen=True, eq=False)
class EmptyRows:
    """A softmax of attention over rows without a key, and why they have none."""

    event: ProgramEvent
    says: str
    why: str
    origin: Value  # where that comes from


def empty_rows(story: Story) -> Iterator[EmptyRows]:
    """Yield the attention of a story over rows that may be masked whole."""
    for event in story.events:
        for mask in _masks(event):
            found = _closed(story, mask)
            if found is not None and not _is_mended(story, event):
                yield EmptyRows(event, *found)


def _closed(story: Story, mask: Value) -> tuple[str, str, Value] | None:
    """Return why a mask leaves rows nothing to see, and where that comes from."""
    length = empty_length(story, mask)
    if length is not None:
        return "An empty sequence masks every key of its row", "a length may be 0 here", length
    if marks_tokens(story, mask):
        says = "The mask blocks tokens instead of padding"
        return says, "true for tokens, which it should be for padding", mask
    if closes_padded_rows(mask):
        return "The mask blocks the rows of padding too", "along both dimensions", mask
    sparse = random_empty_rows(mask)
    if sparse is not None:
        return "Rows of the mask have no key by chance", "some rows are empty", sparse
    lonely = lonely_rows(mask)
    if lonely is not None:
        return "A row without a neighbour masks every key", "a row leaves itself out here", lonely
    return None


def _masks(event: ProgramEvent) -> Iterator[Value]:
    """The masks that an event blocks keys with."""
    kind = layer_kind(event.receiver) if event.name == "()" else ""
    if kind == "MultiheadAttention" or kind.startswith("Transformer"):
        yield from (event.kwargs[name] for name in MASKS if name in event.kwargs)
        return
    operation = operation_of(event.result)
    if operation is None or operation.name != "softmax" or not operation.operands:
        return
    for scores in same_numbers(operation.operands[0]):
        filled = operation_of(scores)
        is_filled = filled is not None and filled.name == "masked_fill"
        if filled is None or not is_filled or len(filled.operands) < 3:
            continue
        if number_of(filled.operands[2]) == float("-inf"):
            yield filled.operands[1]


def _is_mended(story: Story, event: ProgramEvent) -> bool:
    if not isinstance(event.result, Result):
        return True
    users = (operation_of(user) for user in story.flow.onward(event.result))
    return any(u is not None and u.name in MENDED for u in users)
