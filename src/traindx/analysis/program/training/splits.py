"""How data are divided: by a library's split, or cut at an index, in order or by a permutation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Value,
    is_same,
)
from traindx.analysis.program.training.data import Role, feeds, is_draw, named_role

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

LIBRARY = ("train_test_split", "random_split")
DEPTH = 4  # steps from a part to what is made of it


@dataclass(frozen=True, eq=False)
class Division:
    """A whole and two parts of it that have nothing in common."""

    whole: Value
    head: Value
    tail: Value
    order: Value | None = None  # the indices that were cut, where the whole was not

    @property
    def is_random(self) -> bool:
        """Whether chance decides which part an example is in."""
        made = self.head.of if isinstance(self.head, Part) else None
        if isinstance(made, Result) and made.maker.rsplit(".", 1)[-1] in LIBRARY:
            return True
        return self.order is not None and is_draw(self.order)


def divisions(story: Story) -> Iterator[Division]:
    """Yield how the data of a program are divided."""
    heads: list[tuple[Value, Value, Value, Value | None]] = []
    tails: list[tuple[Value, Value, Value, Value | None]] = []
    for value in story.values:
        cut = _cut(value)
        if cut is not None:
            (heads if cut[0] else tails).append((value, *cut[1:]))
        elif isinstance(value, Result) and value.maker.rsplit(".", 1)[-1] in LIBRARY:
            yield from _by_library(value)
    for tail, whole, start, order in tails:
        for head, other, end, ordered in heads:
            is_one = whole is other and is_same(start, end)
            is_alike = order is ordered or (order and ordered and is_same(order, ordered))
            if is_one and is_alike:
                yield Division(whole, head, tail, order)


def _by_library(split: Result) -> Iterator[Division]:
    parts = {k[1]: v for k, v in split.fields.items() if isinstance(k, tuple) and k[0] == "part"}
    is_sets = split.maker.endswith("random_split")
    for position, whole in enumerate(split.args[:1] if is_sets else split.args):
        head, tail = parts.get(2 * position), parts.get(2 * position + 1)
        if head is not None and tail is not None:
            yield Division(whole, head, tail)


def _cut(value: Value) -> tuple[bool, Value, Value, Value | None] | None:
    """Return whether a value is a head or tail, of what, where it is cut, and by which order."""
    if not isinstance(value, Result) or value.maker != "operator.getitem":
        return None
    whole, key = value.args
    if isinstance(key, Items) and key.fields:
        key = key.members[0]
    bound = _bound(key)
    if bound is not None:
        return bound[0], whole, bound[1], None
    inner = _cut(key) if isinstance(key, Result) and key.maker == "operator.getitem" else None
    return None if inner is None else (inner[0], whole, inner[2], inner[1])


def _bound(key: Value) -> tuple[bool, Value] | None:
    """Return whether a slice is a head, and its bound: `:n` and `n:`."""
    if not isinstance(key, Result) or key.maker != "builtins.slice" or len(key.args) != 3:
        return None
    low, high, step = key.args
    if not _is_open(step) or _is_open(low) is _is_open(high):
        return None
    return (True, high) if _is_open(low) else (False, low)


def _is_open(bound: Value) -> bool:
    return isinstance(bound, Known) and bound.value in (None, 0)


def roles_of(story: Story, value: Value) -> set[Role]:
    """Return what data, and what is made of them, are for, as far as loaders and names say."""
    loaders = {id(f.loader): f.role for f in feeds(story)}
    found: set[Role] = set()
    pending, seen = [(value, DEPTH)], {id(value)}
    while pending:
        data, left = pending.pop()
        role = loaders.get(id(data)) or named_role(data)
        if role is not Role.UNKNOWN:
            found.add(role)
            continue
        for made in story.made_from(data) if left else ():
            if id(made) not in seen:
                seen.add(id(made))
                pending.append((made, left - 1))
    return found
