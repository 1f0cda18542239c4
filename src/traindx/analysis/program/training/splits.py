"""How data are divided: by a library's split, or cut at an index, in order or by a permutation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    is_same,
    origins,
)
from traindx.analysis.program.training.claims import function_name
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import (
    SEEDS,
    Feed,
    Role,
    data_chain,
    feeds,
    is_draw,
    joined_parts,
    named_role,
    split_from,
)
from traindx.analysis.program.training.kinds import names_of, words_of
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

SORTS = ("argsort", "sort", "sorted", "sort_values")
LABELS = frozenset({"y", "label", "labels", "target", "targets", "class", "classes", "category"})
# parts that are meant to have classes of their own
ON_PURPOSE = re.compile(
    r"client|federat|non_?iid|shard|worker|node|task|incremental|continual|unseen|novel|zero_?shot"
    r"|few_?shot|open_?set|ood|outlier|anomal",
    re.IGNORECASE,
)

OF_CLASSES = ("cross_entropy", "nll_loss")
LIBRARY = ("train_test_split", "random_split")
PERMUTATIONS = ("torch.randperm", "numpy.random.permutation")
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

    @property
    def place(self) -> Value:
        """What divides: the call of a library, or the part that is cut out."""
        is_part = isinstance(self.tail, Part) and self.tail.site is None
        return self.tail.of if is_part else self.tail  # type: ignore[attr-defined]

    @property
    def is_for_test(self) -> bool:
        """Whether the split itself says what its second part is for."""
        made = self.tail.of if isinstance(self.tail, Part) else None
        return isinstance(made, Result) and made.maker.endswith("train_test_split")


def class_labels(program: Program) -> list[Value]:
    """Return the data that a loss takes as the classes to be predicted, and what they are cut of.

    What only decides their order is none of them.
    """
    found: list[Value] = []
    for loss in program.results(*OF_CLASSES):
        target = loss.operation.argument("target")
        found.extend([] if target is None else data_chain(loss.story, target))
    return found


def divisions(story: Story) -> tuple[Division, ...]:
    """Return how the data of a program are divided."""
    return story.recall(_divisions)


def _divisions(story: Story) -> tuple[Division, ...]:
    return tuple(_found_divisions(story))


def _found_divisions(story: Story) -> Iterator[Division]:
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


@dataclass(frozen=True, eq=False)
class Overlap:
    """Two parts of one whole that share some of its examples."""

    head: Value
    tail: Value
    shared: int | None  # how many, where that is known


def overlaps(story: Story) -> Iterator[Overlap]:
    """Yield the parts for training and for testing that are cut at numbers that overlap."""
    cuts = [(v, c) for v in story.values if (c := _cut(v)) is not None]
    for head, (is_head, whole, end, order) in cuts:
        for tail, (is_other, other, start, ordered) in cuts:
            low, high = constant(start), constant(end)
            is_one = is_head and not is_other and whole is other and order is ordered
            if not is_one or not isinstance(low, int) or not isinstance(high, int):
                continue
            parts = (roles_of(story, head), roles_of(story, tail))
            is_pair = {Role.TRAIN} in parts and {Role.HELD_OUT} in parts
            if is_pair and 0 <= low < high:
                yield Overlap(head, tail, high - low)


def redrawn_parts(story: Story) -> Iterator[Overlap]:
    """Yield training and held-out parts that two draws of one whole decide, each by itself.

    A draw that decides both of its parts is a split of its own, as for another fold.
    """
    found: dict[int, _Drawn] = {}
    for value in story.values:
        drawn = _drawn(value)
        if drawn is not None:
            roles = roles_of(story, value)
            held = found.setdefault(id(drawn.order), drawn)
            held.roles.update(roles)
            held.parts.append(value)
    for train in found.values():
        for held in found.values() if train.roles == {Role.TRAIN} else ():
            if held.roles == {Role.HELD_OUT} and _are_two_draws(story, train, held):
                yield Overlap(train.parts[0], held.parts[0], None)


@dataclass(eq=False)
class _Drawn:
    """A random order or split of a whole, the parts that are cut out of it and their roles."""

    whole: Value
    order: Result
    parts: list[Value] = field(default_factory=list)
    roles: set[Role] = field(default_factory=set)


def _drawn(value: Value) -> _Drawn | None:
    """Return the draw that decides which examples a part holds."""
    if isinstance(value, Part) and isinstance(value.of, Result):
        made = value.of
        is_split = made.maker.rsplit(".", 1)[-1] == "random_split" and bool(made.args)
        return _Drawn(made.args[0], made) if is_split else None
    cut = _cut(value)
    if cut is None:
        return None
    _, whole, _, order = cut
    order = whole if order is None else order
    if not isinstance(order, Result) or order.maker not in PERMUTATIONS or not order.args:
        return None
    return _Drawn(order.args[0] if order is whole else whole, order)


def _are_two_draws(story: Story, train: _Drawn, held: _Drawn) -> bool:
    """Tell whether two draws of the same data differ: no seed makes them alike."""
    if not (train.whole is held.whole or is_same(train.whole, held.whole)):
        return False
    if any({"generator", "random_state"} & set(d.order.kwargs) for d in (train, held)):
        return False
    events = story.index.giving(train.order, held.order)
    if len(events) != 2 or events[0].turns != events[1].turns:
        return False
    first, second = events
    return not any(
        e.name.rsplit(".", 1)[-1] in SEEDS and first.order < e.order < second.order
        for e in story.events
    )


RESAMPLES = (".fit_resample", "sklearn.utils.resample")
JOINS = frozenset({"concatenate", "concat", "vstack", "cat"})
FAR = 20  # steps from a part back to what repeats its examples


def _shared(train: Feed, held: Feed) -> Value | None:
    """What both loaders read."""
    if train.dataset is None or held.dataset is None:
        return None
    read = list(joined_parts(train.dataset))
    is_joined = len(read) > 1 + (read[0] is train.dataset)
    for part in joined_parts(held.dataset):
        if is_joined and any(part is r for r in read):
            return part
        whole = split_from(part)
        if whole is not None and any(r is whole for r in read):
            return whole
    return None


def _is_held_out(story: Story, division: Division) -> bool:
    roles = roles_of(story, division.head) | roles_of(story, division.tail)
    return division.is_for_test or Role.HELD_OUT in roles


def shared_data(story: Story) -> tuple[Feed, Feed, Value] | None:
    """Return the one training loader, a held-out loader, and what both read.

    Nothing where some held-out loader reads other data.
    """
    found = feeds(story)
    training = [f for f in found if f.role is Role.TRAIN]
    if len(training) != 1:
        return None
    held_out = [f for f in found if f.role is Role.HELD_OUT]
    shared = [(f, value) for f in held_out if (value := _shared(training[0], f)) is not None]
    return (training[0], *shared[0]) if shared and len(shared) == len(held_out) else None


def repeated_before(story: Story) -> tuple[Division, Value] | None:
    """Return a split into training and held-out data, and what repeated examples before it."""
    for division in divisions(story):
        found = repetition(division.whole)
        if found is not None and _is_held_out(story, division):
            return division, found
    return None


def repetition(value: Value) -> Value | None:
    """Return what repeats examples on the way to a value."""
    for _ in range(FAR):
        value = whole_tensor(value)
        if isinstance(value, Part) and isinstance(value.of, Result):
            value = value.of
        if not isinstance(value, Result):
            return None
        name = value.maker.rsplit(".", 1)[-1]
        if value.maker in RESAMPLES:
            return None if constant(value.kwargs.get("replace")) is False else value
        if name == "sample" and constant(value.kwargs.get("replace")) is True:
            return value
        if _adds_own(value, name) or _repeats_rows(value, name):
            return value
        if value.maker != "operator.getitem":
            return None
        drawn = next((v for v in origins(value.args[1], 200) if _draws_again(v)), None)
        if drawn is not None:
            return drawn
        value = value.args[0]
    return None


def _draws_again(value: Value) -> bool:
    """Tell whether indices are drawn with replacement out of several."""
    if not isinstance(value, Result) or value.maker.rsplit(".", 1)[-1] != "choice":
        return False
    given = value.kwargs.get("replace") or (value.args[2] if len(value.args) > 2 else None)
    many = "size" in value.kwargs or len(value.args) > 1
    is_array = value.maker != "random.choice"
    return is_array and many and (given is None or constant(given) is True)


def _adds_own(value: Result, name: str) -> bool:
    """Tell whether some rows of data are put behind all of them: `concatenate([X, X[rare]])`."""
    members = value.args[0].members if value.args and isinstance(value.args[0], Items) else []
    axis = value.kwargs.get("axis") or value.kwargs.get("dim") or (value.args[1:] or (None,))[0]
    if name not in JOINS or constant(axis) not in (None, 0) or (axis and not _is_zero(axis)):
        return False
    taken = [
        v.args[0]
        for v in members
        if isinstance(v, Result) and v.maker == "operator.getitem" and not _is_cut(v)
    ]
    return any(v is whole for v in members for whole in taken)


def _is_zero(axis: Value) -> bool:
    return isinstance(axis, Known) and axis.value == 0


def _is_cut(value: Result) -> bool:
    """Tell whether columns are taken, and not rows."""
    return isinstance(value.args[1], Items)


def _repeats_rows(value: Result, name: str) -> bool:
    """Tell whether every row stands there several times: `np.repeat(X, 3, axis=0)`."""
    if name not in ("repeat", "repeat_interleave", "tile") or value.receiver is not None:
        return False
    times = constant(value.args[1]) if len(value.args) > 1 else None
    axis = value.kwargs.get("axis") or value.kwargs.get("dim")
    is_rows = axis is None or _is_zero(axis)
    return isinstance(times, int) and times > 1 and is_rows and name != "tile"


def cut_by_class(program: Program) -> Iterator[tuple[Division, Value]]:
    """Yield data that are held out by a cut through the order of their labels, and that order."""
    for story in program.stories:
        for division in divisions(story):
            order = None if division.order is not None else _order(program, division.whole)
            if order is not None and _is_holdout_cut(story, division):
                yield division, order


def _order(program: Program, value: Value) -> Value | None:
    """What put data in the order of their labels."""
    operation = operation_of(value)
    if operation is None:
        return None
    if operation.name == "getitem" and len(operation.operands) > 1:
        return _sorting(program, operation.operands[1])
    if operation.name == "sort_values":
        return _sorting(program, value)
    return None


def _sorting(program: Program, value: Value) -> Value | None:
    if isinstance(value, Part) and value.key in (1, "indices"):  # of `labels.sort()`
        value = value.of
    operation = operation_of(value)
    if operation is None or operation.name not in SORTS:
        return None
    given = [*operation.operands, *operation.settings.values()]
    labels = class_labels(program)
    is_of_labels = any(_is_label(v) or any(v is label for label in labels) for v in given)
    return value if is_of_labels else None


def _is_label(value: Value) -> bool:
    """Tell whether a value, or the column it names, is of labels."""
    text = getattr(value, "value", None)
    names = [text] if isinstance(text, str) else names_of(value)
    return any(words_of(name) & LABELS for name in names)


def _is_holdout_cut(story: Story, division: Division) -> bool:
    """Tell whether a cut parts what is learnt from what is judged by, and not by design."""
    around = function_name(division.tail)
    made = [division.head, division.tail, *story.made_from(division.tail)]
    made += story.made_from(division.head)
    names = [name for value in made for name in names_of(value)]
    if any(ON_PURPOSE.search(name) for name in (*names, around)):
        return False
    roles = roles_of(story, division.head) | roles_of(story, division.tail)
    return Role.HELD_OUT in roles or "split" in around.lower()
