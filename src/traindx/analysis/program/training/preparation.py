"""How training and held-out data are prepared before a loader reads them, set side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Instance,
    Items,
    Known,
    Result,
    Table,
    Value,
    constant,
)
from traindx.analysis.program.training.data import Feed, Role, feeds, is_draw
from traindx.analysis.program.training.facts.certainty import makers
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.preprocessing import is_statistic, statistics_of_all

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

TEXTS = frozenset({".lower", ".upper", ".casefold", ".swapcase"})
POINTWISE = frozenset({"log", "log1p", "log2", "log10", "sqrt", "exp", "expm1", "tanh", "sigmoid"})
SCALES: dict[str, Callable[[float], float]] = {
    **dict.fromkeys(("div", "divide", "true_divide"), lambda n: 1 / n),
    **dict.fromkeys(("mul", "multiply"), lambda n: n),
}
MOST = 400  # values on the way from a dataset to its data


@dataclass(frozen=True, eq=False)
class UnlikePreparation:
    """A step that one of two datasets goes through and the other does not."""

    train: Feed
    held: Feed
    step: str
    site: Value  # where it is done
    is_in_training: bool


def unlike_preparations(story: Story) -> Iterator[UnlikePreparation]:
    """Yield where inputs of training and of held-out data are prepared in different ways."""
    found = feeds(story)
    for train in (f for f in found if f.trains):
        for held in (f for f in found if f.role is Role.HELD_OUT):
            first, second = (_inputs(f.dataset) for f in (train, held))
            if first is None or second is None:
                continue
            steps = [_steps(story, v) for v in (first, second)]
            if not all(is_whole for _, is_whole in steps):
                continue
            yield from _unlike(train, held, steps[0][0], steps[1][0])


def _unlike(
    train: Feed, held: Feed, first: dict[str, Value], second: dict[str, Value]
) -> Iterator[UnlikePreparation]:
    only = [(s, v, True) for s, v in first.items() if s not in second]
    only += [(s, v, False) for s, v in second.items() if s not in first]
    for step, value, is_in_training in only:
        yield UnlikePreparation(train, held, step, value, is_in_training)


def _inputs(dataset: Value | None) -> Value | None:
    """Return what a dataset gives to a model: its first tensor, or the first of each pair."""
    if isinstance(dataset, Result) and dataset.maker.endswith(".TensorDataset") and dataset.args:
        return dataset.args[0]
    if isinstance(dataset, Items) and dataset.members:
        pair = dataset.members[0]
        return pair.members[0] if isinstance(pair, Items) and pair.members else None
    return None


def _steps(story: Story, value: Value) -> tuple[dict[str, Value], bool]:
    """Return the steps that data went through, and whether all of their way is in sight."""
    found: dict[str, Value] = {}
    pending, seen, is_whole = [value], {id(value)}, True
    while pending:
        step = pending.pop()
        name = _step_name(step)
        if name and step.site is not None:
            found.setdefault(name, step)
        is_whole = is_whole and len(seen) < MOST and not isinstance(step, Instance)
        for below in _data_of(story, step):
            if id(below) not in seen and len(seen) < MOST:
                seen.add(id(below))
                pending.append(below)
    return found, is_whole


def _data_of(story: Story, value: Value) -> tuple[Value, ...]:
    """Return what a value is made of that are data, and no statistics, tables or numbers."""
    made = makers(story).get(value)
    if made is not None and isinstance(made.receiver, Table):
        return made.args[:1]  # looked up in a vocabulary
    if isinstance(value, Result) and value.maker in ("builtins.len", "builtins.range"):
        return ()
    return tuple(v for v in value.inputs if not isinstance(v, (Known, Table))
                 and not is_draw(v) and not is_statistic(v))  # fmt: skip


def _step_name(value: Value) -> str:
    """Return how a step changes data, the same for the same in another form; empty for none."""
    if not isinstance(value, Result):
        return ""
    if value.maker in TEXTS:
        return value.maker[1:]
    operation = operation_of(value)
    if operation is None:
        return ""
    name = operation.name.rsplit(".", 1)[-1]
    if name in POINTWISE and len(operation.operands) == 1:
        return name
    factor = constant(operation.operands[1]) if len(operation.operands) == 2 else None
    is_number = isinstance(factor, (int, float)) and not isinstance(factor, bool)
    if name not in SCALES or not is_number or factor in (0, 1, -1):
        return ""
    return f"* {SCALES[name](float(factor)):.4g}"  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class OwnStatistics:
    """Held-out data that are scaled by statistics of their own, as training data are by theirs."""

    held: Feed
    statistic: Value


def own_statistics(story: Story) -> Iterator[OwnStatistics]:
    """Yield held-out datasets of a class that scales whatever it is given by its own statistics."""
    found = feeds(story)
    for train in (f for f in found if f.trains):
        for held in (f for f in found if f.role is Role.HELD_OUT):
            pair = [f.dataset for f in (train, held)]
            if not all(isinstance(d, Instance) for d in pair) or pair[0] is pair[1]:
                continue
            learnt = [None if d is None else statistics_of_all(d) for d in pair]
            if learnt[0] is None or learnt[1] is None or learnt[0] is learnt[1]:
                continue
            nodes = [v.site.node for v in learnt if v is not None and v.site is not None]
            if len(nodes) == 2 and nodes[0] is nodes[1]:
                yield OwnStatistics(held, learnt[1])
