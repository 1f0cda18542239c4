"""The numbers by which training and held-out inputs are normalised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Instance, Items, Result, Value, constant
from traindx.analysis.program.training.data import Role, feeds, named_role, subject_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

CLOSE = 0.01  # rounded otherwise, not another normalisation
Numbers = list[list[float]]
Pair = tuple[Result, Result]


@dataclass(frozen=True, eq=False)
class OtherNormalisation:
    """Two compositions of transforms, the first for training, and how each of them normalises."""

    train: Result
    held: Result
    first: Result
    second: Result | None


def other_normalisations(story: Story) -> Iterator[OtherNormalisation]:
    """Yield held-out data that are normalised by other numbers than training data, or not."""
    for train, held in (*_by_use(story), *_by_name(story)):
        first, second = _normalize(train), _normalize(held)
        if train is held or held.site is None or first is None:
            continue
        numbers, other = _numbers(first), None if second is None else _numbers(second)
        if numbers is None or (other is None and (second is not None or not _is_whole(held))):
            continue
        if other is None or not _are_close(numbers, other):
            yield OtherNormalisation(train, held, first, second)


def _by_use(story: Story) -> Iterator[Pair]:
    """The compositions of the loaders of one dataset's kind that train and evaluate."""
    found = feeds(story)
    for train in found:
        for held in found:
            if not train.trains or held.role is not Role.HELD_OUT:
                continue
            kinds = [_made_by(f.dataset) for f in (train, held)]
            pair = [_transform(f.dataset) for f in (train, held)]
            if kinds[0] == kinds[1] and pair[0] is not None and pair[1] is not None:
                yield pair[0], pair[1]


def _made_by(dataset: Value | None) -> object:
    if isinstance(dataset, Instance):
        return dataset.cls.node
    return dataset.maker if isinstance(dataset, Result) else dataset


def _transform(dataset: Value | None) -> Result | None:
    """The composition that the examples of a dataset pass through."""
    if isinstance(dataset, Result):
        given = dataset.kwargs.get("transform")
    elif isinstance(dataset, Instance):
        held = [v for v in dataset.fields.values() if _is_composition(v)]
        given = held[0] if len(held) == 1 else None
    else:
        given = None
    return given if isinstance(given, Result) and _is_composition(given) else None


def _by_name(story: Story) -> Iterator[Pair]:
    """Compositions that are named for training and for held-out data, and otherwise alike."""
    made = [e for e in story.events if e.result is not None and _is_composition(e.result)]
    for held in made:
        if held.result is None or named_role(held.result) is not Role.HELD_OUT:
            continue
        for train in made:
            first, second = train.result, held.result
            is_pair = first is not None and named_role(first) is Role.TRAIN
            if not is_pair or not _is_same_branch(train, held):
                continue
            is_made = isinstance(first, Result) and isinstance(second, Result)
            if is_made and subject_of(first) == subject_of(second):  # type: ignore[arg-type]
                yield first, second  # type: ignore[misc]


def _is_same_branch(one: ProgramEvent, other: ProgramEvent) -> bool:
    """Tell whether two things are done under the same conditions: others are for other data."""
    sides = [[(g.site.node, g.holds) for g in event.guards] for event in (one, other)]
    return sides[0] == sides[1]


def _is_composition(value: Value) -> bool:
    is_made = isinstance(value, Result) and value.receiver is None
    return is_made and value.maker.rsplit(".", 1)[-1] == "Compose"  # type: ignore[attr-defined]


def _steps(composed: Result) -> list[Value] | None:
    """The transforms of a composition; None where some are out of sight."""
    given = composed.args[0] if composed.args else composed.kwargs.get("transforms")
    return given.members if isinstance(given, Items) and given.is_whole else None


def _normalize(composed: Result) -> Result | None:
    for step in _steps(composed) or []:
        if isinstance(step, Result) and step.maker.rsplit(".", 1)[-1] == "Normalize":
            return step
    return None


def _is_whole(composed: Result) -> bool:
    """Tell whether every step of a composition is a library's, and it ends in a tensor."""
    steps = _steps(composed)
    makers = [s.maker for s in steps or [] if isinstance(s, Result)]
    is_seen = steps is not None and len(makers) == len(steps)
    is_known = is_seen and all(n.startswith(("torchvision.", "torch.nn.")) for n in makers)
    return is_known and any(n.endswith((".ToTensor", ".ToDtype")) for n in makers)


def _numbers(made: Result) -> Numbers | None:
    """The mean and the deviation, one number each where all channels have the same."""
    given = {**dict(zip(("mean", "std"), made.args, strict=False)), **made.kwargs}
    rows = [_row(given.get(name)) for name in ("mean", "std")]
    found = [r for r in rows if r]
    return found if len(found) == 2 else None


def _row(value: Value | None) -> list[float]:
    members = value.members if isinstance(value, Items) else [] if value is None else [value]
    found = [constant(v) for v in members]
    numbers = [float(x) for x in found if isinstance(x, (int, float))]
    if len(numbers) != len(found):
        return []
    return numbers[:1] if len(set(numbers)) == 1 else numbers


def _are_close(one: Numbers, other: Numbers) -> bool:
    if [len(r) for r in one] != [len(r) for r in other]:
        return False
    pairs = (p for a, b in zip(one, other, strict=True) for p in zip(a, b, strict=True))
    return all(abs(a - b) <= CLOSE for a, b in pairs)
