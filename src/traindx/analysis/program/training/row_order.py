"""In which order examples stand: what puts inputs or labels in a random order, and which one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Part,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.claims import function_name
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import (
    SEEDS,
    batch_part,
    data_chain,
    feeds,
    is_draw,
    loader_behind,
    model_inputs,
)
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.operations import LOSSES, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

ON_PURPOSE = ("noise", "noisy", "corrupt", "flip", "poison", "permut", "null", "smooth", "mix",
              "marginal", "negativ", "contrast", "mismatch", "chance", "baseline")  # fmt: skip
PERMUTED = ("randperm", "permutation", "permuted")
MOVES = ("roll", "flip", "getitem", *PERMUTED)
COUNTS = frozenset({"builtins.slice", "builtins.len", "builtins.range", ".size"})
SHUFFLES = ("numpy.random.shuffle", "random.shuffle", ".shuffle")


@dataclass(frozen=True, eq=False)
class Reordering:
    """A step that puts data in a random order; `order` is the same where two data share it."""

    moved: Value
    order: object


def reorderings(story: Story, value: Value) -> Iterator[Reordering]:
    """Yield what puts data in a random order on their way to a value, nearest first.

    An order that a seed just before makes repeatable is none: another may be the same.
    """
    for step in data_chain(story, value):
        order = _order(step)
        if order is not None and not _is_seeded(story, order):
            yield Reordering(step, order)
        yield from (Reordering(step, event) for event in _shuffles(story, step))
        loader = loader_behind(step)
        if loader is not None and _is_shuffled_loader(story, loader):
            yield Reordering(step, loader)


def _shuffles(story: Story, data: Value) -> list[ProgramEvent]:
    """Return where data are shuffled in place."""
    return [
        e
        for e in story.index.taking(data)
        if e.name in SHUFFLES and e.args and e.args[0] is data
        and not isinstance(data, Items) and not _is_drawn_alike(story, e)
    ]  # fmt: skip


def _is_shuffled_loader(story: Story, loader: Value) -> bool:
    """Tell whether a loader draws an order of its own."""
    feed = next((f for f in feeds(story) if f.loader is loader), None)
    if feed is None or feed.shuffles is not Answer.YES:
        return False
    return not {"generator", "sampler"} & set(feed.settings)


def lone_reorderings(
    story: Story, value: Value, others: list[Value], scores: Value | None = None
) -> Iterator[Reordering]:
    """Yield what puts data in an order that none of the other data, of the same rows, share.

    Nor the scores, where they are given: a label that a generator gets is what it is to make.
    """
    ways = {id(v) for o in others for v in _made_of(story, o)}
    ways |= {id(v) for v in origins(scores)} if scores is not None else set()
    shared = {id(r.order) for o in others for r in reorderings(story, o)}
    for found in reorderings(story, value):
        if id(found.order) not in ways | shared and id(found.moved) not in ways:
            yield found


def _made_of(story: Story, value: Value) -> Iterator[Value]:
    """Yield what data are made of: what only counts or bounds their rows has no order of them."""
    pending = [v for v in data_chain(story, value) if batch_part(story, v) is v]
    seen = {id(v) for v in pending}
    while pending:
        found = pending.pop()
        yield found
        counts = isinstance(found, Result) and found.maker in COUNTS
        is_shape = isinstance(found, Part) and found.key == "shape"
        for below in () if counts or is_shape else found.inputs:
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)


def _order(step: Value) -> Value | None:
    """Return the random order in which a step takes rows."""
    operation = operation_of(step)
    if operation is None or not isinstance(step, Result):
        return None
    if operation.name == "getitem":
        order = whole_tensor(step.args[1])
        return order if _is_permutation(order) else None
    last = step.maker.rsplit(".", 1)[-1]
    if last == "sample" and constant(step.kwargs.get("frac")) == 1:
        return step  # the rows of a table, all of them
    is_own = last == "permutation" and is_draw(step) and bool(step.args)
    return step if is_own and constant(step.args[0]) is None else None


def _is_permutation(value: Value) -> bool:
    return (
        is_draw(value) and isinstance(value, Result) and value.maker.rsplit(".", 1)[-1] in PERMUTED
    )


def _is_seeded(story: Story, order: Value) -> bool:
    """Tell whether a seed is set just before: with one before each, two orders are the same."""
    drawn = story.giver_of(order)
    return drawn is None or _is_drawn_alike(story, drawn)


def _is_drawn_alike(story: Story, drawn: ProgramEvent) -> bool:
    """Tell whether a generator is seeded just before a draw, and before another as well."""
    seeds = [e for e in story.events if e.name.rsplit(".", 1)[-1] in SEEDS]
    others = [e for e in story.events if e.result is not None and is_draw(e.result)]
    for seed in seeds:
        between = [e for e in others if seed.order < e.order < drawn.order]
        is_before = seed.order < drawn.order and seed.turns == drawn.turns
        again = [e for e in seeds if e.name == seed.name]
        if is_before and not between and (drawn.turns or len(again) > 1):
            return True
    return False


def _moved_alone(
    story: Story, inputs: list[Value], target: Value, scores: Value
) -> Iterator[Disturbance]:
    """Yield labels or inputs that stand in an order of their own."""
    if not inputs:
        return
    for found in lone_reorderings(story, target, inputs, scores):
        if not _is_on_purpose(found.moved):
            yield Disturbance(found.moved, "Labels")
            return
    if len(list(data_chain(story, target))) < 2:  # the target is no part of the data
        return
    alone = [list(lone_reorderings(story, given, [target])) for given in inputs]
    if all(alone) and not _is_on_purpose(alone[0][0].moved):
        yield Disturbance(alone[0][0].moved, "Inputs")


def _changed_alone(story: Story, target: Value) -> Iterator[Disturbance]:
    """Yield the steps on the way of the labels that replace or roll them."""
    for value in data_chain(story, target):
        if value.site is None or _is_on_purpose(value):
            continue
        if _is_replaced(value):
            yield Disturbance(value, "Labels", "replaced at random in part")
        elif _is_rolled(value):
            yield Disturbance(value, "Labels", "moved along the examples")


def _is_replaced(value: Value) -> bool:
    """`torch.where(torch.rand(…) < p, other, labels)`, the other a label that is drawn or moved."""
    operation = operation_of(value)
    if operation is None or operation.name != "where" or len(operation.operands) != 3:
        return False
    mask, *sides = operation.operands
    if not any(is_draw(v) for v in origins(mask, 60)):
        return False
    for other, kept in (sides, reversed(sides)):
        moved = operation_of(other)
        is_moved = moved is not None and moved.name in MOVES and bool(moved.operands)
        if is_moved and moved is not None and moved.operands[0] is kept:
            return True
        if is_draw(whole_tensor(other)) and not is_draw(whole_tensor(kept)):
            return constant(kept) is None
    return False


def _is_rolled(value: Value) -> bool:
    """Tell whether labels are moved along the examples: `y.roll(1, 0)`, `np.roll(y, 1)`."""
    operation = operation_of(value)
    if operation is None or operation.name.rsplit(".", 1)[-1] != "roll":
        return False
    given = operation.settings.get("dims") or operation.settings.get("axis")
    if given is None and len(operation.operands) > 2:
        given = operation.operands[2]
    return given is None or constant(given) == 0


def _is_on_purpose(value: Value) -> bool:
    names = [function_name(value), *names_of(value)]
    names += [n for v in origins(value, 12) for n in names_of(v)]
    return any(word in name.lower() for name in names for word in ON_PURPOSE)


@dataclass(frozen=True, eq=False)
class Disturbance:
    """A step that changes which labels and inputs belong together."""

    value: Value
    what: str  # is changed alone: "Labels" or "Inputs"
    how: str = "put in another order"


def disturbances(story: Story) -> Iterator[Disturbance]:
    """Yield what is done to the labels of a loss, or to the inputs, alone."""
    for loss in story.operations(*LOSSES):
        target, scores = loss.operation.argument("target"), loss.operation.argument("input")
        if target is None or scores is None or loss.event.gradients is Answer.NO:
            continue
        inputs = model_inputs(story, scores, loss.event)
        yield from _moved_alone(story, inputs, target, scores)
        yield from _changed_alone(story, target)
