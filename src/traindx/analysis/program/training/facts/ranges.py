"""The whole numbers that a tensor reaches: labels, tokens, indices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm
from traindx.analysis.program.execution.values import (
    Choice,
    Items,
    Known,
    Part,
    Result,
    Table,
    Value,
    constant,
    is_same,
    origins,
)
from traindx.analysis.program.shapes.datasets import CLASSES
from traindx.analysis.program.shapes.sizes import product
from traindx.analysis.program.training.facts import sample_sets
from traindx.analysis.program.training.facts.arrays import GENERATORS
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.facts.certainty import makers
from traindx.analysis.program.training.facts.drawn_constants import constants_in
from traindx.analysis.program.training.operations import operation_name, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# the numbers stay, in another shape, order, place or type
SAME = frozenset(
    {"view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "flatten", "contiguous",
     "clone", "detach", "cuda", "cpu", "long", "int", "to", "type", "tensor", "as_tensor", "array",
     "asarray", "from_numpy", "astype", "numpy", "LongTensor", "copy", "t", "ravel", "stack", "cat",
     "concatenate", "repeat", "expand", "pin_memory", "getitem", "int64", "shuffle", "flip",
     "permutation", "hstack", "vstack", "float", "tolist", "expand_as", "item", "repeat_interleave",
     "unfold", "roll", "tile"}
)  # fmt: skip
JOINED = frozenset({"stack", "cat", "unbind", "split", "chunk", "transpose", "t", "column_stack"})
TESTS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
# what picks rows by a test, what combines tests, and what says nothing of the rows it is tested by
PICKS = frozenset({"nonzero", "isin", "flatnonzero", "argwhere", "where", "in1d", "masked_select"})
COMBINES = frozenset(
    {"and", "or", "xor", "invert", "logical_and", "logical_or", "logical_not", "tensor", "getitem",
     "as_tensor", "from_numpy", "numpy", "to", "cpu", "cuda", "bool", "not", "array", "asarray",
     "squeeze", "flatten", "view", "reshape"}
)  # fmt: skip
ENCODES = frozenset({"fit_transform"})
CHANCE = frozenset({"arange", "rand", "random", "uniform", "randperm", "permutation"})
MANY = 3  # draws for each possible number, that the highest is surely among them
VOID = 255  # in label maps of public sets, what belongs to no class
VOID_MAPS = ("labelTrainIds", "SegmentationClass")
SURE = 5  # draws that should have met a range, that one of them surely has
SETTLED = frozenset({"zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like"})


@dataclass(frozen=True, slots=True)
class Reached:
    """The lowest and the highest whole number that surely occur.

    Marked: one of them stands for no class, such as 255 for what is not labelled.
    """

    low: int
    high: int
    is_marked: bool = False


class Ranges:
    """The whole numbers that the tensors of one story reach."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._known: dict[Value, Reached | None] = {}
        self._stored: dict[int, list[Value]] = {}
        events = [*story.events, *(e for x in story.execution.examples for e in x.events)]
        for event in events:
            if event.act is EventForm.STORE and event.receiver is not None and event.name == "[]":
                self._stored.setdefault(id(event.receiver), []).append(event.args[0])
            elif event.name.endswith("_") and event.receiver is not None:
                self._stored.setdefault(id(event.receiver), []).append(event.receiver)

    def of(self, value: Value | None) -> Reached | None:
        """Return what whole numbers a value reaches; None where that is not known."""
        if value is None:
            return None
        if value not in self._known:
            self._known[value] = None  # ends a circle
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: Value) -> Reached | None:
        if isinstance(value, Known):
            number = value.value
            is_whole = isinstance(number, int) and not isinstance(number, bool)
            return Reached(number, number) if is_whole and isinstance(number, int) else None
        if isinstance(value, Choice):
            return _all([self.of(o) for o in value.options])
        if isinstance(value, (Items, Table)):
            return _all([self.of(m) for m in value.inputs])
        if isinstance(value, (Part, Result)):
            batch = drawn(self.story, value)
            if batch is not None:
                return self.of(batch.value)
        if isinstance(value, Part):
            return self._part(value)
        found = self._computed(value) if isinstance(value, Result) else None
        return self._with_stored(value, found)

    def _with_stored(self, value: Value, found: Reached | None) -> Reached | None:
        """Add the numbers that are written into a tensor after it was made."""
        stored = self._stored.get(id(value))
        if not stored:
            return found
        name = operation_name(value.maker) if isinstance(value, Result) else ""
        if name.rsplit(".", 1)[-1] not in SETTLED:
            return self._marked(stored)
        return _all([found, *(self.of(s) for s in stored)])

    def _marked(self, stored: list[Value]) -> Reached | None:
        """Return what numbers reach, of which some are replaced by one mark: 255 for no class."""
        mark = constant(stored[0])
        is_one = type(mark) is int and all(constant(s) == mark for s in stored)
        return (
            Reached(min(0, mark), max(0, mark), True) if is_one and isinstance(mark, int) else None
        )

    def _part(self, value: Part) -> Reached | None:
        owner = value.of
        if sample_sets.set_name(owner) and value.key in ("target", 1):
            return _below(sample_sets.classes_of(owner))
        if isinstance(owner, Result) and owner.maker.endswith(".train_test_split"):
            at = value.key // 2 if isinstance(value.key, int) else -1
            return self.of(owner.args[at]) if 0 <= at < len(owner.args) else None
        if isinstance(owner, Result) and owner.maker.startswith("torchvision.datasets."):
            is_plain = value.key == 1 and "target_transform" not in owner.kwargs
            if owner.maker.endswith(".EMNIST"):
                split = constant(owner.kwargs.get("split"))
                return Reached(1, 26) if is_plain and split == "letters" else None
            return _below(CLASSES.get(owner.maker.rsplit(".", 1)[-1])) if is_plain else None
        is_joined = isinstance(owner, Result) and operation_name(owner.maker) in JOINED
        is_row = isinstance(value.key, int) and not is_joined
        return self.of(owner) if is_row or value.key in ("data", "values") else None

    def _computed(self, value: Result) -> Reached | None:
        operation = operation_of(value)
        if operation is None:
            return None
        name = operation.name.rsplit(".", 1)[-1]
        args = list(operation.operands)
        drawn_at_random = self._drawn(value, name)
        if drawn_at_random is not None:
            return drawn_at_random
        if name in ("arange", "range", "randperm", "next") and args:
            return self._counted(value, name, args)
        if name in TESTS:
            return Reached(0, 1)
        if name in ENCODES and isinstance(value.receiver, Result) and value.args:
            is_encoder = value.receiver.maker.endswith(".LabelEncoder")
            return _below(len(constants_in(value.args[0]))) if is_encoder else None
        if name == "index" and isinstance(value.receiver, Items) and value.receiver.is_whole:
            return _below(len(value.receiver.members))
        if value.maker == "PIL.Image.open" and any(is_void_map(v) for v in origins(value, 40)):
            return Reached(0, VOID, True)
        if name == "where" and len(args) == 3:
            return _all([self.of(args[1]), self.of(args[2])])
        if name == "pad_sequence" and args:
            filled = operation.settings.get("padding_value", Known(0))
            return _all([self.of(args[0]), self.of(filled)])
        if name in SETTLED:
            return self._filled(name, args)
        if name in ("add", "sub", "mul", "mod", "remainder", "floordiv") and len(args) == 2:
            return self._shifted(name, *args)
        if name == "getitem" and (not _keeps_columns(args[1]) or _is_picked(args[1])):
            kept = kept_members(value)
            return self.of(kept) if isinstance(kept, Items) and kept.is_whole else None
        return self.of(args[0]) if name in SAME and args else None

    def _filled(self, name: str, args: Sequence[Value]) -> Reached | None:
        if name.startswith("full"):
            return self.of(args[1]) if len(args) > 1 else None
        number = 1 if name.startswith("ones") else 0
        return Reached(number, number)

    def _number(self, value: Value | None) -> int | None:
        found = self.story.shapes.of(value)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def _drawn(self, value: Result, name: str) -> Reached | None:
        """Return what random whole numbers reach, where there are enough of them."""
        home = value.maker.rpartition(".")[0]
        is_rng = isinstance(value.receiver, Result) and value.receiver.maker in GENERATORS
        args = list(value.args)
        if home == "random" and name in ("randint", "randrange", "choice"):
            return self._python(name, args)
        if name == "choice" and (is_rng or home == "numpy.random") and args:
            count = self._number(args[0])
            return _below(count) if count is not None else self.of(args[0])
        is_torch = value.maker == "torch.randint"
        if name not in ("randint", "integers") or not (
            is_torch or is_rng or home == "numpy.random"
        ):
            return None
        bounds = args[:2]
        given = value.kwargs.get("high")
        if given is not None:
            bounds = [*args[:1], given]
        is_one = len(bounds) == 1 or isinstance(bounds[1], Items)
        low, high = (Known(0), bounds[0]) if is_one and bounds else (*bounds, None, None)[:2]
        first, last = self._number(low), self._number(high)
        if first is None or last is None or last <= first:
            return None
        missing = self._missing(value, last - first)
        return Reached(first, last - 1 - missing) if missing < last - first else None

    def _missing(self, value: Result, possible: int) -> int:
        """Return how many of the highest numbers may not be drawn; in a loop, all will be."""
        shape = self.story.shapes.shape(value)
        if shape is None or shape.is_open or self._is_repeated(value):
            return 0
        total = product(shape.sizes)
        if not isinstance(total, int) or total >= MANY * possible:
            return 0
        return -(-SURE * possible // max(total, 1))

    def _is_repeated(self, value: Result) -> bool:
        """Tell whether numbers are drawn anew for each example, or in each turn of a loop."""
        made = self.story.drawn.giving(value)
        event = makers(self.story).get(value)
        return bool(made) or (event is not None and any(not t.loop.is_whole for t in event.turns))

    def _python(self, name: str, args: list[Value]) -> Reached | None:
        if name == "choice":
            return self.of(args[0]) if args else None
        numbers = [self._number(a) for a in args]
        if len(numbers) == 1 and name == "randrange":
            return _below(numbers[0])
        low, high = (*numbers, None, None)[:2]
        if low is None or high is None:
            return None
        return Reached(low, high if name == "randint" else high - 1)

    def _counted(self, value: Result, name: str, args: list[Value]) -> Reached | None:
        if name == "next":
            return self.of(args[0])
        numbers = [self._number(a) for a in args]
        if len(numbers) == 1 or name == "randperm":
            return _below(numbers[0])
        low, high = numbers[:2]
        is_known = low is not None and high is not None and len(numbers) == 2
        return Reached(low, high - 1) if is_known and low is not None and high else None

    def _shifted(self, name: str, left: Value, right: Value) -> Reached | None:
        by, found = constant(right), self.of(left)
        if name in ("add", "mul") and not isinstance(by, int):
            by, found = constant(left), self.of(right)
        if not isinstance(by, int) or isinstance(by, bool):
            return None
        if name in ("mod", "remainder"):
            return found if found and found.low >= 0 and found.high < by else _below(by)
        if found is None:
            return None
        if name == "mul":
            return Reached(found.low * by, found.high * by) if by > 0 else None
        if name == "floordiv":
            return Reached(found.low // by, found.high // by) if by > 0 else None
        by = by if name == "add" else -by
        return Reached(found.low + by, found.high + by)


def kept_members(value: Value) -> Value | None:
    """Return what the numbers of a tensor are members of, where those are kept: `y[isin(y, k)]`."""
    if not isinstance(value, Result) or operation_name(value.maker) != "getitem":
        return None
    owner, test = value.args[0], operation_of(value.args[1])
    name = "" if test is None else test.name.rsplit(".", 1)[-1]
    if test is None or name not in ("isin", "in1d") or len(test.operands) < 2:
        return None
    is_plain = not test.settings and is_same(test.operands[0], owner)
    return test.operands[1] if is_plain else None


def is_void_map(value: Value) -> bool:
    """Tell whether a text names the label maps of Cityscapes or VOC, which hold 255."""
    text = constant(value)
    return isinstance(text, str) and any(name in text for name in VOID_MAPS)


def _keeps_columns(key: Value) -> bool:
    """Tell whether a subscript takes rows: columns may hold numbers of their own."""
    keys = key.members if isinstance(key, Items) and key.kind == "tuple" else []
    return all(_keeps_all(k) for k in keys[1:])


def _is_picked(key: Value, depth: int = 6) -> bool:
    """Tell whether a subscript takes rows by a test, after which any number may be missing."""
    if isinstance(key, Items):
        return not key.is_whole
    key = key.of if isinstance(key, Part) else key
    operation = operation_of(key)
    if operation is None or depth == 0:
        return False
    name = operation.name.rsplit(".", 1)[-1]
    if name == "train_test_split":  # gives parts of what may have been picked before
        return any(_is_picked(v, depth - 1) for v in operation.operands)
    if name in TESTS:
        return not any(_is_by_chance(v) for v in operation.operands)
    return name in PICKS or any(
        _is_picked(v, depth - 1) for v in operation.operands if name in COMBINES
    )


def _is_by_chance(value: Value) -> bool:
    """Tell whether positions or random numbers are tested, which have nothing to do with rows."""
    operation = operation_of(value)
    return operation is not None and operation.name.rsplit(".", 1)[-1] in CHANCE


def _keeps_all(key: Value) -> bool:
    if isinstance(key, Known):
        return key.value is None or key.value is ...
    return isinstance(key, Result) and key.maker == "builtins.slice"


def _below(count: int | None) -> Reached | None:
    return None if count is None or count < 1 else Reached(0, count - 1)


def _all(found: Iterable[Reached | None]) -> Reached | None:
    known = list(found)
    if not known or any(k is None for k in known):
        return None
    ranges = [k for k in known if k is not None]
    is_marked = any(r.is_marked for r in ranges)
    return Reached(min(r.low for r in ranges), max(r.high for r in ranges), is_marked)
