"""How many examples a dataset has, how many batches a loader gives, and what they never reach."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Guard, LoopRun
from traindx.analysis.program.execution.truth import truth_of
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    is_same,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.counters import is_index
from traindx.analysis.program.training.loaders import (
    argument_of,
    batch_size,
    dataset_of,
    has_sampler,
    is_loader,
)
from traindx.analysis.program.training.phases import source_of
from traindx.analysis.program.training.row_counts import counted_rows
from traindx.analysis.program.training.settings import ARITHMETIC, default_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

DEEP = 40
READS = frozenset({".index", ".count", ".copy", ".sort", ".reverse"})  # keep how many there are
SPLITS = frozenset({"torch.utils.data.random_split", "torch.utils.data.dataset.random_split"})
NUMBERS: dict[str, Callable[..., object]] = {
    **ARITHMETIC, "operator.mod": operator.mod, "builtins.int": int, "builtins.round": round,
    "builtins.min": min, "builtins.max": max, "math.ceil": math.ceil, "math.floor": math.floor,
    "numpy.ceil": math.ceil, "numpy.floor": math.floor, "builtins.float": float,
}  # fmt: skip


def number_of(story: Story, value: Value | None, depth: int = DEEP) -> int | None:
    """Return the whole number that a value is with the settings as they are in the source."""
    found = amount_of(story, value, depth)
    return found if type(found) is int else None


def amount_of(story: Story, value: Value | None, depth: int = DEEP) -> int | float | None:
    """Return the number that a value is with the settings as they are in the source."""
    if isinstance(value, Known):
        return value.value if type(value.value) in (int, float) else None  # type: ignore[return-value]
    if value is None or depth == 0:
        return None
    default = default_of(story, value)
    if default is not None:
        return amount_of(story, default, depth - 1)
    asked = _rows_asked(value)
    if asked is not None:
        return length_of_data(story, asked, depth - 1)
    if not isinstance(value, Result):
        return None
    numbers = [amount_of(story, v, depth - 1) for v in value.args]
    known = [n for n in numbers if n is not None]
    if value.maker not in NUMBERS or len(known) != len(numbers) or value.kwargs:
        return None
    return _computed(value.maker, known)


def _rows_asked(value: Value) -> Value | None:
    """Return what a number is the count of rows of: `len(x)`, `x.shape[0]`, `x.size(0)`."""
    if not isinstance(value, (Part, Result)):
        return None
    if isinstance(value, Result) and value.maker == "builtins.len" and len(value.args) == 1:
        return value.args[0]
    if isinstance(value, Result) and value.maker == ".size" and value.args:
        return value.receiver if constant(value.args[0]) == 0 else None
    shape = value.of if isinstance(value, Part) else value.args[0] if value.args else None
    key = value.key if isinstance(value, Part) else constant(value.args[-1]) if value.args else None
    is_shape = isinstance(shape, Part) and shape.key == "shape" and key == 0
    return shape.of if isinstance(shape, Part) and is_shape else None


def _computed(maker: str, known: list[int | float]) -> int | float | None:
    try:
        found = NUMBERS[maker](*known)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return found if type(found) in (int, float) else None  # type: ignore[return-value]


def length_of_data(story: Story, data: Value | None, depth: int = DEEP) -> int | None:
    """Return how many rows a list, tensor, dataset or loader has."""
    if data is None or depth == 0:
        return None
    if is_loader(data):
        return batches_of(story, data)
    if isinstance(data, Items):
        return _length_of_list(story, data, depth)
    if isinstance(data, Instance):
        made = (x.length for x in story.execution.examples if dataset_of(x.loader) is data)
        found = number_of(story, next(made, None), depth - 1)
        return None if found is None or found < 0 else found
    if isinstance(data, Result) and data.maker.endswith(".TensorDataset") and data.args:
        return length_of_data(story, data.args[0], depth - 1)
    part = length_of_part(story, data, depth - 1)
    if part is not None:
        return part
    shape = story.shapes.shape(data)
    size = shape.sizes[0] if shape is not None and not shape.is_open and shape.sizes else None
    if isinstance(size, int):
        return size
    return counted_rows(
        data,
        lambda v: length_of_data(story, v, depth - 1),
        lambda v: amount_of(story, v, depth - 1),
    )


def _length_of_list(story: Story, data: Items, depth: int) -> int | None:
    """Return how many members a list has: written down, or added one by one in a loop."""
    if data.is_whole:
        return len(data.members)
    changes = [e for e in story.index.on(data) if e.name.startswith(".") and e.name not in READS]
    if data.over is not None:
        return None if changes else length_of_data(story, data.over, depth - 1)
    first = changes[0] if changes and data.kind == "list" and not data.ahead else None
    if first is None or any(e.name != ".append" or e.node is not first.node for e in changes):
        return None
    inner = [t.loop for t in first.turns if t not in data.born]
    if first.guards or len({e.callers for e in changes}) > 1 or any(map(_may_stop, inner)):
        return None
    counts = [length_of_data(story, loop.over, depth - 1) for loop in inner]
    known = [c for c in counts if c is not None]
    return math.prod(known) if known and len(known) == len(counts) else None


def _may_stop(loop: LoopRun) -> bool:
    """Tell whether a loop may end early, or leave turns out."""
    stops = (ast.Break, ast.Continue, ast.Return)
    return any(isinstance(n, stops) for n in ast.walk(loop.site.node))


def length_of_part(story: Story, data: Value, depth: int = DEEP) -> int | None:
    """Return how many rows a part has: of `random_split`, of a `Subset`, or `rows[len(rows):]`."""
    if isinstance(data, Part) and isinstance(data.of, Result) and isinstance(data.key, int):
        sizes = argument_of(data.of, "lengths", 1) if data.of.maker in SPLITS else None
        known = sizes.fields.get(data.key) if isinstance(sizes, Items) and sizes.is_whole else None
        whole = data.of.args[0] if data.of.args else None
        share = amount_of(story, known, depth)
        return share if type(share) is int else _share(story, share, whole, sizes, data.key, depth)
    if not isinstance(data, Result) or len(data.args) < 2:
        return None
    if data.maker.rsplit(".", 1)[-1] == "Subset":
        return length_of_data(story, data.args[1], depth)
    if data.maker == "operator.getitem" and _starts_at_end(*data.args[:2]):
        return 0
    return None


def _share(
    story: Story,
    share: float | None,
    whole: Value | None,
    sizes: Value | None,
    key: int,
    depth: int,
) -> int | None:  # fmt: skip
    """Return the rows of a part by its share: the first parts get what is left by rounding."""
    rows = length_of_data(story, whole, depth)
    parts = sizes.members if isinstance(sizes, Items) else []
    shares = [amount_of(story, v, depth) for v in parts]
    known = [s for s in shares if s is not None]
    if share is None or rows is None or len(known) != len(shares) or sum(known) > 1.001:
        return None
    floors = [math.floor(rows * s) for s in known]
    return floors[key] + int(key < rows - sum(floors))


def _starts_at_end(rows: Value, key: Value) -> bool:
    """Tell whether a slice begins where the rows end: `rows[len(rows):]`."""
    if not isinstance(key, Result) or key.maker != "builtins.slice":
        return False
    begin, stop, stride = (*key.args, Known(None), Known(None))[:3]
    is_count = isinstance(begin, Result) and begin.maker == "builtins.len" and bool(begin.args)
    is_open = all(isinstance(v, Known) and v.value is None for v in (stop, stride))
    return is_count and is_open and is_same(begin.inputs[0], rows)


def batches_of(story: Story, loader: Value) -> int | None:
    """Return how many batches a loader gives in an epoch."""
    rows, size = length_of_data(story, dataset_of(loader)), batch_size(story, loader)
    if rows is None or not size or has_sampler(loader) or not isinstance(loader, Result):
        return None
    drops = truth_of(argument_of(loader, "drop_last", 8) or Known(False))
    if drops is None:
        return None
    return rows // size if drops else -(-rows // size)


@dataclass(frozen=True, eq=False)
class UnreachedStep:
    """A step that waits for more batches than an epoch has."""

    step: Deed
    loop: LoopRun
    period: int
    batches: int


def unreached_steps(story: Story) -> Iterator[UnreachedStep]:
    """Yield the steps of optimizers that no epoch is long enough for, where nothing else steps."""
    steps = story.does(Do.STEP)
    found = {id(s): f for s in steps if (f := _unreached(story, s)) is not None}
    for step in steps:
        others = [s for s in steps if s.subject is step.subject]
        is_sure = step.subject is not None and story.escapes(step.subject) is Answer.NO
        if is_sure and all(id(s) in found for s in others):
            yield found[id(step)]


def _unreached(story: Story, step: Deed) -> UnreachedStep | None:
    around = [loop for loop in step.event.loops if not loop.is_whole]
    over = around[-1].over if around else None
    batches = None if over is None else batches_of(story, source_of(over))
    if batches is None or over is None:
        return None
    for guard in step.event.guards:
        wait = _wait(story, guard)
        if wait is None:
            continue
        added, period, left = wait
        first = _first_index(story, over)
        turns = () if first is None else range(first, first + batches)
        if turns and all((i + added) % period != left for i in turns):
            return UnreachedStep(step, around[-1], period, batches)
    return None


def _wait(story: Story, guard: Guard) -> tuple[int, int, int] | None:
    """Return what is added to the index, the period and the remainder of `(i + 1) % n == 0`."""
    test, left = guard.test, 0
    maker = test.maker if isinstance(test, Result) else ""
    given = [] if test is None else list(test.inputs)
    if maker == "operator.not" and guard.holds:
        test = given[0]
    elif (maker == "operator.eq" and guard.holds) or (maker == "operator.ne" and not guard.holds):
        number = constant(given[1])
        test, left = given[0], number if isinstance(number, int) else -1
    elif guard.holds:
        return None
    if not isinstance(test, Result) or test.maker != "operator.mod" or left < 0:
        return None
    period = number_of(story, test.args[1])
    added = _added(test.args[0])
    return None if added is None or not period else (added, period, left)


def _added(value: Value) -> int | None:
    """Return what is added to the running number of a loop; None where it is none."""
    if is_index(value):
        return 0
    if isinstance(value, Result) and value.maker == "operator.add" and is_index(value.args[0]):
        more = constant(value.args[1])
        return more if isinstance(more, int) else None
    return None


def _first_index(story: Story, over: Value) -> int | None:
    """Return the number that `enumerate` begins with."""
    while isinstance(over, Result) and over.maker != "builtins.enumerate" and over.args:
        over = over.args[0]
    if not isinstance(over, Result) or over.maker != "builtins.enumerate":
        return None
    given = over.kwargs.get("start") or (over.args[1] if over.args[1:] else Known(0))
    return number_of(story, given)
