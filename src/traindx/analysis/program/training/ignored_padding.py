"""Padding of targets under one index, and a loss that leaves out another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Items, Known, Result, Value, constant
from traindx.analysis.program.training.data import data_chain
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.tensors import whole

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

DEFAULT = -100  # the ignore_index of torch's losses
# the argument of each that says what the rest is filled with
PADS = {
    "pad_sequence": ("padding_value", 2), "full": ("fill_value", 1), "masked_fill": ("value", 2),
    "pad": ("value", 3), "full_like": ("fill_value", 1),
}  # fmt: skip

LOSSES = ("cross_entropy", "nll_loss")
MARKS = frozenset({"masked_fill", "where", "masked_select", "scatter", "index_fill"})


@dataclass(frozen=True, eq=False)
class OtherIndex:
    """A loss that ignores one index, and its targets, which are padded with another."""

    loss: ProgramEvent
    padded: Value
    ignored: int
    pad: int


def other_indices(program: Program) -> Iterator[OtherIndex]:
    """Yield the losses that ignore an index which is not that of the padding."""
    for loss in program.results(*LOSSES):
        target = loss.operation.argument("target")
        ignored = constant(loss.operation.settings.get("ignore_index"))
        if target is None or type(ignored) is not int or loss.event.gradients is Answer.NO:
            continue
        chain = list(data_chain(loss.story, target))
        if _is_marked(loss.story, chain):
            continue
        for value in chain:
            pad = pad_of(value)
            if pad is not None and pad != ignored:
                yield OtherIndex(loss.event, value, ignored, pad)
                break


def pad_of(value: Value) -> int | None:
    """Return the number that sequences are filled up with; None where it is not known."""
    operation = operation_of(value)
    if operation is None:
        return None
    last = operation.name.rsplit(".", 1)[-1]
    if last == "pad_sequence":
        places = operation.operands[2:3]
        given = operation.settings.get("padding_value", next(iter(places), Known(0)))
    elif last == "pad":
        places = operation.operands[3:4]
        given = operation.settings.get("value", next(iter(places), Known(0)))
    elif last == "add" and len(operation.operands) == 2:
        return _filled(operation.operands[1])
    else:
        return None
    found = constant(given)
    return int(found) if isinstance(found, (int, float)) else None


def _filled(value: Value) -> int | None:
    """Return the pad of `[pad] * (length - len(tokens))`."""
    operation = operation_of(value)
    if operation is None or operation.name != "mul" or len(operation.operands) != 2:
        return None
    listed = operation.operands[0]
    found = [constant(v) for v in listed.members] if isinstance(listed, Items) else []
    return found[0] if len(found) == 1 and isinstance(found[0], int) else None


def _is_marked(story: Story, chain: list[Value]) -> bool:
    """Tell whether positions of the targets are given another number on the way."""
    made = [operation_of(v) for v in chain]
    if any(o is not None and o.name in MARKS for o in made):
        return True
    drawn = (e for x in story.execution.examples for e in x.events)
    stores = (e for e in (*story.events, *drawn) if e.act is EventForm.STORE and e.name == "[]")
    return any(e.receiver is value for e in stores for value in chain)


def unignored_padding(program: Program) -> Iterator[tuple[ProgramEvent, Value, int, object]]:
    """Yield losses that take padding for a class: where it is made, its number, what is ignored."""
    for loss in program.results(*LOSSES):
        target = loss.operation.argument("target")
        ignored = loss.operation.argument("ignore_index")
        index = DEFAULT if ignored is None else constant(ignored)
        made = None if target is None else whole(loss.story, target)
        value = None if made is None else _padding(made)
        if made is not None and value is not None and index not in (None, value):
            yield loss.event, made, value, index


def _padding(labels: Value) -> int | None:
    """Return the negative number that labels are padded with."""
    operation = operation_of(labels)
    name = "" if operation is None else operation.name.rsplit(".", 1)[-1]
    if operation is None or name not in PADS or not isinstance(labels, Result):
        return None
    key, position = PADS[name]
    operands = operation.operands
    given = operation.settings.get(key) or (operands[position] if operands[position:] else None)
    number = given.value if isinstance(given, Known) else None
    is_label = isinstance(number, int) and not isinstance(number, bool) and number < 0
    return number if is_label and isinstance(number, int) and labels.site is not None else None
