"""Shuffled copies that are made and thrown away: the data stay in the order they had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Known, Part, Result, Value, constant
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.data import feeds, is_draw
from traindx.analysis.program.training.loaders import generator_behind

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

COPIES = frozenset({"numpy.random.permutation", "random.sample", "sklearn.utils.shuffle"})
OF_GENERATORS = frozenset({".permutation", ".sample", ".permuted"})
ORDERS = frozenset({"randperm", "permutation"})
TABLES = ("pandas.",)
LIBRARY_DATA = ("datasets.",)


def dropped_shuffles(story: Story) -> Iterator[ProgramEvent]:
    """Yield where data are shuffled into a copy that nothing keeps, in a program that trains."""
    if not story.does(Do.BACKWARD) or any(_is_shuffled_later(story)):
        return
    for event in story.events:
        if event.is_dropped and not event.is_own and not event.is_tried and _copies(event):
            yield event


def unread_orders(story: Story) -> Iterator[ProgramEvent]:
    """Yield the permutations that are drawn in a loop that trains, and in no case read.

    Their length may be asked, and pieces of them cut that nothing reads either.
    """
    steps = [d.event for d in story.does(Do.STEP, Do.MANUAL_UPDATE) if d.event.loops]
    for event in story.events if steps and not any(_is_shuffled_later(story)) else ():
        last = event.name.rsplit(".", 1)[-1]
        if last not in ORDERS or event.is_dropped or event.result is None or not event.args:
            continue
        around = {run.site.node for run in event.loops}
        trains = any(around & {run.site.node for run in s.loops} for s in steps)
        if trains and is_draw(event.result) and not _is_read(story, event.result):
            yield event


def _is_read(story: Story, order: Value, depth: int = 4) -> bool:
    """Tell whether anything takes a value for more than its length."""
    if depth == 0 or story.escapes(order) is Answer.YES:
        return True
    taken = [e for e in story.events if _takes(e, order)]
    held = [v for v in story.values if v is not order and any(i is order for i in v.inputs)]
    known = {id(e.result) for e in taken}
    if any(id(v) not in known and not _measures(v) for v in held):
        return True  # a list or object has it, or a loop goes over it
    for event in taken:
        is_piece = event.name == "operator.getitem" and event.args[0] is order
        if _measures(event.result) or (event.is_own and event.name == "print"):
            continue
        if not is_piece or event.result is None or _is_read(story, event.result, depth - 1):
            return True
    return any(run.over is order for e in story.events for run in e.loops)


def _takes(event: ProgramEvent, value: Value) -> bool:
    given = (event.receiver, *event.args, *event.kwargs.values())
    return any(v is value for v in given)


def _measures(value: Value | None) -> bool:
    """Tell whether a value is how long another is."""
    is_length = isinstance(value, Result) and value.maker in ("builtins.len", ".size", ".numel")
    return is_length or (isinstance(value, Part) and value.key in ("shape", "size"))


def _is_shuffled_later(story: Story) -> Iterator[bool]:
    """Yield for each loader of the training whether it puts its examples in another order."""
    for feed in feeds(story):
        yield feed.trains and (feed.shuffles is not Answer.NO or feed.sampler is not None)


def _copies(event: ProgramEvent) -> bool:
    """Tell whether a call gives a shuffled copy of data, and leaves the data as they are."""
    given = event.args[0] if event.args else None
    if event.name in COPIES:
        return _is_data(given)
    if event.name in OF_GENERATORS and generator_behind(event.receiver) is not None:
        return _is_data(given) and "out" not in event.kwargs
    if event.name == ".sample" and constant(event.kwargs.get("frac")) == 1:
        return _is_made_by(event.receiver, TABLES) and "inplace" not in event.kwargs
    if event.name == ".shuffle":
        return _is_made_by(event.receiver, LIBRARY_DATA)
    is_taken = event.name == "operator.getitem" and len(event.args) == 2
    return is_taken and is_draw(event.args[1])


def _is_data(value: Value | None) -> bool:
    """Tell whether a value is a collection: a number stands for the range up to it."""
    is_number = isinstance(value, Result) and value.maker == "builtins.len"
    return value is not None and not isinstance(value, Known) and not is_number


def _is_made_by(value: Value | None, makers: tuple[str, ...]) -> bool:
    while isinstance(value, Result) and value.receiver is not None:
        value = value.receiver
    return isinstance(value, Result) and value.maker.startswith(makers)
