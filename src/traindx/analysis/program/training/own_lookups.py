"""What is learnt from held-out data alone and again from training data: ids, codes, scales."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm
from traindx.analysis.program.execution.iteration import COUNTED
from traindx.analysis.program.execution.values import (
    Choice,
    Items,
    Known,
    Part,
    Result,
    Table,
    Value,
    constant,
    options_of,
    origins,
)
from traindx.analysis.program.training.data import Feed, Role, feeds, is_draw
from traindx.analysis.program.training.fitting import FITTED

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# what numbers the different values that it is given
CODES = frozenset({"LabelEncoder", "OrdinalEncoder", "OneHotEncoder", "CountVectorizer",
                   "LabelBinarizer", "DictVectorizer", "MultiLabelBinarizer"})  # fmt: skip
DISTINCT = frozenset({"Counter", "set", "frozenset", "fromkeys", "unique"})
INVERSE = frozenset({"numpy.unique", "torch.unique", "pandas.factorize", ".factorize"})
NEAR = 40  # values between a numbering and what makes its values different
FAR = 3000


@dataclass(frozen=True, eq=False)
class OwnLookup:
    """Held-out inputs that are looked up in, or scaled by, what they are learnt from."""

    held: Feed
    learnt: Value
    trained: Value  # its counterpart in training

    @property
    def says(self) -> str:
        kind = self.learnt.maker if isinstance(self.learnt, Result) else ""
        return "fitted anew" if kind == ".fit_transform" else "numbered anew"


def own_lookups(story: Story) -> Iterator[OwnLookup]:
    """Yield held-out loaders whose inputs have ids or scales of their own, as training has its."""
    found = [f for f in feeds(story) if f.example is not None]
    training = list({id(f.dataset): f for f in found if f.trains}.values())
    if len(training) != 1:
        return  # of several trainings it is not known which data belong together
    learnt = _learnt(story, training[0])
    for held in (f for f in found if f.role is Role.HELD_OUT) if learnt else ():
        for own in _learnt(story, held):
            if any(_is_same_data(own, v, set()) for v in learnt):
                break  # what training has learnt is used here, too
            trained = [v for v in learnt if _is_alike(own, v)]
            if trained and own.site is not None:
                yield OwnLookup(held, own, trained[0])
                break


def _learnt(story: Story, feed: Feed) -> list[Value]:
    """What the inputs of a loader have from the different values, or statistics, of their data."""
    example = None if feed.example is None else feed.example.value
    given = example.inputs[:1] if isinstance(example, (Items, Table)) else (example,)
    stored = story.recall(_stored)
    pending = [v for v in given if v is not None]
    found: dict[int, Value] = {}
    seen: set[int] = set()
    while pending and len(seen) < FAR:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        learnt = _numbering(value)
        if learnt is not None:
            found.setdefault(id(learnt), learnt)
        pending.extend((*value.inputs, *stored.get(id(value), ())))
    return list(found.values())


def _stored(story: Story) -> dict[int, list[Value]]:
    """The columns that are written into each table."""
    found: dict[int, list[Value]] = {}
    for event in story.events:
        if event.act is EventForm.STORE and event.name == "[]" and event.receiver is not None:
            found.setdefault(id(event.receiver), []).extend(event.args[:1])
    return found


def _numbering(value: Value) -> Value | None:
    """What gives ids by position among different values, or codes and scales by a fit."""
    if not isinstance(value, Result):
        return None
    if value.maker == "builtins.next" and value.args:
        counted = value.args[0].fields.get(COUNTED) if value.args[0].held else None
        return counted if counted is not None and _is_distinct(counted) else None
    if value.maker == ".fit_transform" and value.args:
        makers = (
            [o.maker for o in options_of(value.receiver) if isinstance(o, Result)]
            if value.receiver is not None
            else []
        )
        names = {m.rsplit(".", 1)[-1] for m in makers}
        return value if names & (CODES | FITTED) else None
    return value if value.maker in INVERSE and "return_inverse" in value.kwargs else None


def _is_distinct(value: Value) -> bool:
    """Tell whether a collection holds each of the values of some data once."""
    return any(
        (isinstance(v, Items) and v.kind == "set")
        or (isinstance(v, Result) and v.maker.rsplit(".", 1)[-1] in DISTINCT)
        for v in origins(value, NEAR)
    )


def _is_same_data(own: Value, other: Value, seen: set[tuple[int, int]]) -> bool:
    """Tell whether two values are made alike of the same data; what is drawn twice is not."""
    if own is other or (id(own), id(other)) in seen:
        return True
    seen.add((id(own), id(other)))
    if type(own) is not type(other) or len(seen) > FAR or is_draw(own):
        return False
    if isinstance(own, Known):
        return constant(own) == constant(other)
    if isinstance(own, Result) and isinstance(other, Result):
        is_drawn = own.maker.startswith(("random.", "numpy.random."))
        if own.maker != other.maker or is_drawn:
            return False
    elif isinstance(own, Part) and isinstance(other, Part):
        if own.key != other.key:
            return False
    elif not isinstance(own, (Items, Choice)):
        return False
    pair = own.inputs, other.inputs
    is_even = len(pair[0]) == len(pair[1]) and bool(pair[0])
    return is_even and all(_is_same_data(a, b, seen) for a, b in zip(*pair, strict=True))


def _is_alike(own: Value, other: Value) -> bool:
    """Tell whether two are learnt in the same way, by one expression or one kind of object."""
    if own.site is not None and other.site is not None and own.site.node is other.site.node:
        return True
    if not (isinstance(own, Result) and isinstance(other, Result)):
        return False
    pair = [v.receiver for v in (own, other)]
    kinds = {v.maker for v in pair if isinstance(v, Result)}
    is_one = pair[0] is pair[1]
    return own.maker == other.maker == ".fit_transform" and len(kinds) == 1 and not is_one
