"""How the dimensions of a tensor lie in memory, and what a view can join."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Items, Known, Part, Result, Value, constant
from traindx.analysis.program.shapes.sizes import Dim, Size, divided
from traindx.analysis.program.training.facts import batches
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# operations on each element, whose result lies in memory as what they are given
ALIKE = frozenset(
    {"relu", "tanh", "sigmoid", "gelu", "silu", "exp", "log", "neg", "abs", "clone", "detach", "to",
     "float", "half", "double", "sqrt", "square", "leaky_relu", "elu", "clamp", "cuda", "cpu"}
)  # fmt: skip
PAIRED = frozenset({"mul", "div", "add", "sub", "eq", "ne", "gt", "lt", "ge", "le"})
# what makes a tensor in the order of its dimensions
MADE = frozenset(
    {"zeros", "ones", "full", "rand", "randn", "randint", "arange", "tensor", "stack", "cat",
     "linear", "embedding", "sequential", "conv2d", "conv1d"}
)  # fmt: skip

NOWHERE = 1000  # the numbers of dimensions that repeat the same memory begin here


def order_of(story: Story, value: Value | None, depth: int = 20) -> tuple[int, ...] | None:
    """Return how the dimensions of a tensor lie in memory, where a permutation or a cut set it.

    Two neighbours lie together where their numbers follow each other. What is cut off leaves a gap.
    """
    if value is None or depth == 0:
        return None
    if isinstance(value, Part):
        return _of_part(story, value, depth)
    operation = operation_of(value)
    if operation is None or not operation.operands:
        return None
    first = operation.operands[0]
    if operation.name == "getitem":
        return _cut(story, value, depth)
    if operation.name in SHARING:
        return SHARING[operation.name](story, value, operation, _base(story, first, depth))
    if operation.name in ALIKE:
        return _dense(order_of(story, first, depth - 1))
    if operation.name in PAIRED and len(operation.operands) == 2:
        return _paired(story, value, operation, depth)
    made = _permutation(story, operation)
    before = None if made is None else order_of(story, first, depth - 1)
    if made is None or before is None:
        return made
    return tuple(before[i] for i in made) if len(before) == len(made) else None


def _of_part(story: Story, value: Part, depth: int) -> tuple[int, ...] | None:
    """Return the layout of `x.T`, or of one of the pieces that a tensor was cut into."""
    rank = _rank(story, value.of)
    if value.key in ("T", "mT"):
        return _swapped(rank, -1, -2) if rank == 2 or (rank and value.key == "mT") else None
    pieces = operation_of(value.of)
    if pieces is None or pieces.name not in ("chunk", "split") or not pieces.operands:
        return None
    order = _base(story, pieces.operands[0], depth)
    given = pieces.settings.get("dim", pieces.operands[2] if len(pieces.operands) > 2 else Known(0))
    dim = constant(given)
    if order is None or not isinstance(dim, int) or not -len(order) <= dim < len(order):
        return None
    gap = order[dim]
    return tuple(at + (gap <= at) for at in order)


def _base(story: Story, tensor: Value, depth: int) -> tuple[int, ...] | None:
    """Return the layout of what is shared; what nothing has rearranged lies as it is numbered."""
    found = order_of(story, tensor, depth - 1)
    rank = _rank(story, tensor)
    return found or (tuple(range(rank)) if rank else None)


def _unfolded(
    story: Story, value: Value, operation: Operation, order: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """Return the layout of windows: their elements lie behind their dimension, and come last."""
    numbers = [constant(v) for v in operation.operands[1:]]
    if order is None or len(numbers) != 3 or not isinstance(numbers[0], int):
        return None
    dim = numbers[0]
    is_method = isinstance(value, Result) and value.receiver is not None
    if not is_method or not -len(order) <= dim < len(order):
        return None
    apart = 1 if numbers[1] is not None and numbers[1] == numbers[2] else 2  # else they overlap
    at = order[dim]
    return (*(other + apart * (other > at) for other in order), at + apart)


def _expanded(
    story: Story, value: Value, operation: Operation, order: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """Return the layout of what is repeated without a copy: that dimension lies nowhere."""
    before, after = story.shapes.shape(operation.operands[0]), story.shapes.shape(value)
    if order is None or before is None or after is None or before.is_open or after.is_open:
        return None
    if not len(order) == len(before.sizes) == len(after.sizes):
        return None
    sizes = enumerate(zip(before.sizes, after.sizes, strict=True))
    repeated = [i for i, (old, new) in sizes if old == 1 and new != 1]
    kept = iter(_without(order, repeated))
    return tuple(NOWHERE + 2 * i if i in repeated else next(kept) for i in range(len(order)))


def _without(order: tuple[int, ...], places: Sequence[int]) -> tuple[int, ...]:
    """Return the layout without dimensions that take no room in memory: the others close up."""
    gone = [order[i] for i in places]
    kept = (at for i, at in enumerate(order) if i not in places)
    return tuple(at - sum(other < at for other in gone) for at in kept)


def _unsqueezed(
    story: Story, value: Value, operation: Operation, order: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """Return the layout with a dimension of one, which lies between its neighbours."""
    dim = constant(operation.operands[1]) if len(operation.operands) > 1 else None
    dim = constant(operation.settings.get("dim")) if dim is None else dim
    if order is None or not isinstance(dim, int) or not -len(order) <= dim + 1 <= len(order) + 1:
        return None
    at = dim % (len(order) + 1)
    number = order[at] if at < len(order) else max(order) + 1
    moved = [other + (other >= number) for other in order]
    return (*moved[:at], number, *moved[at:])


SHARING = {"unfold": _unfolded, "expand": _expanded, "unsqueeze": _unsqueezed}


def _dense(order: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the layout of a copy: the order stays, and gaps are closed."""
    if order is None or any(at >= NOWHERE for at in order):
        return None
    return tuple(sorted(order).index(at) for at in order)


def _paired(story: Story, made: Value, operation: Operation, depth: int) -> tuple[int, ...] | None:
    """Return the layout of what two tensors give: that of the first, where it is as large."""
    first, second = operation.operands
    order = _dense(order_of(story, first, depth - 1))
    if order is None or isinstance(constant(second), (int, float)):
        return order
    sizes, whole = story.shapes.shape(first), story.shapes.shape(made)
    is_whole = sizes is not None and whole is not None and sizes.sizes == whole.sizes
    return order if is_whole and not (sizes is None or sizes.is_open) else None


def _cut(story: Story, value: Value, depth: int) -> tuple[int, ...] | None:
    """Return the layout of what plain slices and numbers leave of a tensor."""
    tensor, key = operation_of(value).operands[:2]  # type: ignore[union-attr]
    order = order_of(story, tensor, depth - 1) or _as_made(story, tensor)
    keys = key.members if isinstance(key, Items) and key.kind == "tuple" else [key]
    if order is None or len(keys) > len(order):
        return None
    left: list[int] = []
    gaps: list[int] = []
    for place, at in zip([*keys, *([None] * (len(order) - len(keys)))], order, strict=True):
        if place is None or _is_all(place):
            left.append(at)
        elif isinstance(place, Result) and place.maker == "builtins.slice":
            left.append(at)
            gaps += [at] if _leaves_out(place) else []
        elif not isinstance(constant(place), int):
            return None
    return tuple(at + sum(gap <= at for gap in gaps) for at in left)


def _is_all(key: Value) -> bool:
    is_slice = isinstance(key, Result) and key.maker == "builtins.slice"
    return is_slice and all(isinstance(v, Known) and v.value is None for v in key.inputs)


def _leaves_out(key: Result) -> bool:
    """Tell whether a slice surely leaves something out: `1:`, `:-1`; `:n` may be all there is."""
    start, end = (constant(v) for v in key.args[:2])
    if isinstance(start, int) and isinstance(end, int) and end - start == 1:
        return False  # one of them is a dimension of size one, which joins with any
    is_late = isinstance(start, int) and start > 0
    return is_late or (isinstance(end, int) and end < 0)


def _as_made(story: Story, tensor: Value) -> tuple[int, ...] | None:
    """Return the layout of a tensor that is surely made in the order of its dimensions."""
    rank, operation = _rank(story, tensor), operation_of(tensor)
    name = "" if operation is None else operation.name
    row = batches.drawn(story, tensor)
    is_made = name in MADE or (row is not None and row.is_stacked)
    return tuple(range(rank)) if rank and is_made else None


def _permutation(story: Story, operation: Operation) -> tuple[int, ...] | None:
    first, *given = operation.operands
    named = [operation.settings[k] for k in ("dims", "dim0", "dim1") if k in operation.settings]
    given = [*given, *named]
    dims = given[0].members if len(given) == 1 and isinstance(given[0], Items) else given
    numbers = [n for n in map(constant, dims) if isinstance(n, int)]
    if len(numbers) != len(dims):
        return None
    if operation.name == "permute":
        rank = len(numbers)
        found = tuple(n % rank for n in numbers) if rank else ()
        return found if sorted(found) == list(range(rank)) and rank > 1 else None
    if operation.name == "t" and not numbers:
        return (1, 0)
    rank_known = _rank(story, first)
    if operation.name != "transpose" or len(numbers) != 2 or rank_known is None:
        return None
    is_inside = all(-rank_known <= n < rank_known for n in numbers)
    return _swapped(rank_known, *numbers) if is_inside else None


def _swapped(rank: int, one: int, other: int) -> tuple[int, ...]:
    order = list(range(rank))
    order[one], order[other] = order[other], order[one]
    return tuple(order)


def _rank(story: Story, value: Value) -> int | None:
    shape = story.shapes.shape(value)
    return None if shape is None or shape.is_open else len(shape.sizes)


def joins_apart(story: Story, tensor: Value, viewed: Value) -> bool:
    """Tell whether a view joins dimensions of a permuted tensor that lie apart in memory."""
    order = order_of(story, tensor)
    if order is None or all(b == a + 1 for a, b in pairwise(order)):
        return False
    known, made = story.shapes.shape(tensor), story.shapes.shape(viewed)
    if made is None or made.is_open:
        return False
    if known is None or known.is_open or len(known.sizes) != len(order):
        return _joins_any(order, len(made.sizes))
    ones = [i for i, size in enumerate(known.sizes) if size == 1]
    before, after = ([n for n in shape.sizes if n != 1] for shape in (known, made))
    return _joins_parted(_without(order, ones), before, after)


def _joins_parted(order: tuple[int, ...], before: Sequence[Dim], after: Sequence[Dim]) -> bool:
    """Tell whether a view joins dimensions that lie apart, of which none is of size one."""
    if not before or not after or all(b == a + 1 for a, b in pairwise(order)):
        return False
    if _joins_any(order, len(after)) or _is_refused(order, before, after):
        return True
    if _is_split_last(before, after):
        return any(order[b] != order[a] + 1 for a, b in pairwise(range(1, len(order))))
    return any(
        any(order[b] != order[a] + 1 for a, b in pairwise(group))
        for group in _groups(before, after)
    )


def _joins_any(order: tuple[int, ...], count: int) -> bool:
    """Tell whether fewer dimensions are left than there are, and no neighbours lie together."""
    return 0 < count < len(order) and not any(b == a + 1 for a, b in pairwise(order))


def _groups(before: Sequence[Dim], after: Sequence[Dim]) -> list[range]:
    """Return which dimensions a view surely makes one of."""
    front = 0
    while front < min(len(before), len(after)) and before[front] == after[front]:
        front += 1
    back = 0
    limit = min(len(before), len(after)) - front
    while back < limit and before[-1 - back] == after[-1 - back]:
        back += 1
    middle, made = range(front, len(before) - back), len(after) - back - front
    if made == 1 and len(middle) > 1:
        return [middle]
    return _known_groups(before, after) if made > 1 else []


def _is_split_last(before: Sequence[Dim], after: Sequence[Dim]) -> bool:
    """Tell whether a view splits the last dimension, and joins all others with what is left."""
    last, wanted = before[-1], after[-1]
    is_known = isinstance(last, int) and isinstance(wanted, int) and 0 < wanted < last
    is_split = is_known and last % wanted == 0  # type: ignore[operator]
    return is_split and len(after) == 3 and len(before) > 2 and before[0] == after[0]


def _is_refused(
    order: Sequence[int], before: Sequence[Dim], after: Sequence[Dim]
) -> bool:  # fmt: skip
    """Go through known sizes from the back, as torch does to find the strides of a view."""
    if before[0] == after[0] and len(before) > 2:
        order, before, after = order[1:], before[1:], after[1:]
    sizes, wanted = [s for s in before if isinstance(s, int)], list(after)
    if len(sizes) != len(before) or not all(isinstance(s, int) and s > 0 for s in wanted):
        return False
    chunk = 1
    for at in reversed(range(len(sizes))):
        chunk *= sizes[at]
        if at and order[at - 1] + 1 == order[at]:
            continue
        while wanted and chunk > 1 and chunk % wanted[-1] == 0:  # type: ignore[operator]
            chunk //= wanted.pop()  # type: ignore[assignment]
        if chunk > 1:
            return True
    return False


def _known_groups(before: Sequence[Dim], after: Sequence[Dim]) -> list[range]:
    """Go through both from the front, as long as the sizes are known."""
    found: list[range] = []
    start, left = 0, list(after)
    while start < len(before) and left:
        wanted, at, total = left.pop(0), start, before[start]
        while total != wanted and at + 1 < len(before):
            rest = divided(wanted, total) if wanted != 0 else None
            if rest is None or isinstance(rest, Size) != isinstance(wanted, Size):
                return found
            at += 1
            total = total * before[at]
        if total != wanted:
            return found
        found.append(range(start, at + 1))
        start = at + 1
    return [group for group in found if len(group) > 1]
