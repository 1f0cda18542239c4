"""Operations that rearrange a tensor: view, flatten, permute, squeeze, cut, join."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from traindx.analysis.program.shapes.sizes import (
    Dim,
    Size,
    divided,
    floor,
    is_dim,
    is_surely_different,
    product,
)
from traindx.analysis.program.shapes.values import Mismatch, Shape, ShapedTensor, Value
from traindx.analysis.program.shapes.windows import Symbols


def position(dim: Value, rank: int) -> int | None:
    """Return a dimension counted from the front; None where it is not known."""
    if not isinstance(dim, int) or isinstance(dim, bool):
        return None
    if not -max(rank, 1) <= dim < max(rank, 1):
        low, high = -max(rank, 1), max(rank, 1) - 1
        text = f"dimension {dim} is out of range for a tensor of {rank} dimensions"
        raise Mismatch("dimension", f"{low} to {high}", dim, text)
    return dim % max(rank, 1)


def positions(dims: Sequence[Value], rank: int) -> list[int | None]:
    """Return dimensions counted from the front; one that is named twice is a mismatch."""
    found = [position(d, rank) for d in dims]
    known = [p for p in found if p is not None]
    if len(set(known)) < len(known):
        text = f"dimensions {', '.join(map(str, dims))} name one dimension twice"
        raise Mismatch("dimension", "each dimension once", tuple(dims), text)
    return found


def may_be_several(wanted: Sequence[Value]) -> bool:
    """Tell whether sizes are given by one value that is not known: a tuple of any length."""
    return len(wanted) == 1 and not is_dim(wanted[0])


def viewed(tensor: ShapedTensor, wanted: Sequence[Value], symbols: Symbols) -> ShapedTensor:
    """Apply view or reshape."""
    if may_be_several(wanted):
        return ShapedTensor()
    sizes = [w if is_dim(w) else symbols.new() for w in wanted]
    gap = next((i for i, s in enumerate(sizes) if s == -1), None)
    known = all(is_dim(w) for w in wanted)
    if tensor.shape.is_open or not known:
        if gap is not None:
            sizes[gap] = symbols.new()
        return ShapedTensor(Shape(tuple(sizes)))
    total = product(tensor.shape.sizes)
    if total == 0:
        return ShapedTensor(Shape((), True))  # an empty tensor is a corner case, not a model
    if gap is None:
        if is_surely_different(total, product(tuple(sizes))):
            raise _unfit(wanted, total, tensor)
        return ShapedTensor(Shape(tuple(sizes)))
    rest = product(tuple(s for i, s in enumerate(sizes) if i != gap))
    sizes[gap] = _remaining(total, rest, wanted, tensor, symbols, is_batch=gap == 0)
    return ShapedTensor(Shape(tuple(sizes)))


def _remaining(
    total: Dim, rest: Dim, wanted: Sequence[Value], tensor: ShapedTensor, symbols: Symbols,
    *, is_batch: bool,
) -> Dim:  # fmt: skip
    exact = divided(total, rest)
    if exact is not None:
        return exact
    if isinstance(total, int) and isinstance(rest, int):
        raise _unfit(wanted, total, tensor)
    lead = tensor.shape.sizes[0] if tensor.shape.sizes else 1
    each = divided(total, lead)
    is_row = isinstance(rest, int) and isinstance(each, int) and min(rest, each) > 1
    if is_row and isinstance(lead, Size) and is_batch:
        raise _unfit(wanted, total, tensor)  # whole only by luck: the batch does not survive it
    return symbols.new()


def _unfit(wanted: Sequence[Value], total: Dim, tensor: ShapedTensor) -> Mismatch:
    text = f"shape [{', '.join(map(str, wanted))}] does not fit the {total} elements of"
    return Mismatch("view", Shape(tuple(w for w in wanted if is_dim(w))), total,
                    f"{text} {tensor.shape}")  # fmt: skip


def flattened(tensor: ShapedTensor, start: Value, end: Value, symbols: Symbols) -> ShapedTensor:
    """Merge a range of dimensions into one."""
    if tensor.shape.is_open:
        if start == 1 and end == -1:
            return ShapedTensor(Shape((symbols.new(), symbols.new())))
        return ShapedTensor()
    sizes = tensor.shape.sizes
    first, last = position(start, len(sizes)), position(end, len(sizes))
    if first is None or last is None or first > last:
        return ShapedTensor()
    merged = product(sizes[first : last + 1])
    return ShapedTensor(Shape((*sizes[:first], merged, *sizes[last + 1 :])))


def unflattened(tensor: ShapedTensor, dim: Value, wanted: Value) -> ShapedTensor:
    """Split one dimension into several."""
    sizes = tensor.shape.sizes
    at = None if tensor.shape.is_open else position(dim, len(sizes))
    if at is None or not isinstance(wanted, tuple) or not all(is_dim(w) for w in wanted):
        return ShapedTensor()
    parts = [w for w in wanted if is_dim(w)]
    if -1 in parts:
        rest = product(tuple(p for p in parts if p != -1))
        whole = divided(sizes[at], rest)
        if whole is None and isinstance(sizes[at], int) and isinstance(rest, int):
            raise _unfit(wanted, sizes[at], tensor)
        if whole is None:
            return ShapedTensor()
        parts[parts.index(-1)] = whole
    if is_surely_different(product(tuple(parts)), sizes[at]):
        raise _unfit(wanted, sizes[at], tensor)
    return ShapedTensor(Shape((*sizes[:at], *parts, *sizes[at + 1 :])))


def permuted(tensor: ShapedTensor, order: Sequence[Value]) -> ShapedTensor:
    """Reorder all dimensions."""
    sizes = tensor.shape.sizes
    if tensor.shape.is_open or not all(isinstance(o, int) for o in order):
        return ShapedTensor()
    if len(order) != len(sizes):
        text = f"permute{tuple(order)} names {len(order)} dimensions of {tensor.shape}"
        raise Mismatch("dimension", f"{len(sizes)} dimensions", f"{len(order)}", text)
    places = positions(order, len(sizes))
    return ShapedTensor(Shape(tuple(sizes[p] for p in places if p is not None)))


def transposed(tensor: ShapedTensor, first: Value, second: Value) -> ShapedTensor:
    """Swap two dimensions."""
    sizes = list(tensor.shape.sizes)
    if tensor.shape.is_open:
        inside = all(isinstance(d, int) and -len(sizes) <= d < 0 for d in (first, second))
        if not inside:
            return ShapedTensor()
    a, b = position(first, len(sizes)), position(second, len(sizes))
    if a is None or b is None:
        return ShapedTensor()
    sizes[a], sizes[b] = sizes[b], sizes[a]
    return ShapedTensor(Shape(tuple(sizes), tensor.shape.is_open))


def squeezed(tensor: ShapedTensor, dim: Value) -> ShapedTensor:
    """Drop dimensions of size one; a size that is not known may be one."""
    sizes = tensor.shape.sizes
    if tensor.shape.is_open:
        return ShapedTensor()
    if dim is None:
        unsure = any(isinstance(s, Size) and str(s) != "B" for s in sizes)
        return ShapedTensor() if unsure else ShapedTensor(Shape(tuple(s for s in sizes if s != 1)))
    given = dim if isinstance(dim, tuple) else (dim,)
    places = [position(d, len(sizes)) for d in given]
    if any(p is None or not isinstance(sizes[p], int) for p in places):
        return ShapedTensor()
    kept = [s for i, s in enumerate(sizes) if i not in places or s != 1]
    return ShapedTensor(Shape(tuple(kept)))


def unsqueezed(tensor: ShapedTensor, dim: Value) -> ShapedTensor:
    """Add a dimension of size one."""
    sizes = list(tensor.shape.sizes)
    if tensor.shape.is_open:
        return ShapedTensor(Shape((*sizes, 1), True)) if dim == -1 else ShapedTensor()
    at = position(dim, len(sizes) + 1)
    if at is None:
        return ShapedTensor()
    return ShapedTensor(Shape((*sizes[:at], 1, *sizes[at:])))


def expanded(tensor: ShapedTensor, wanted: Sequence[Value], symbols: Symbols) -> ShapedTensor:
    """Apply expand: -1 keeps a size."""
    if may_be_several(wanted):
        return ShapedTensor()
    own = tensor.shape.sizes
    if tensor.shape.is_open or len(wanted) < len(own):
        return ShapedTensor(
            Shape(tuple(w if is_dim(w) and w != -1 else symbols.new() for w in wanted))
        )
    padded: tuple[Dim, ...] = (1,) * (len(wanted) - len(own)) + own
    sizes: list[Dim] = []
    for new, old in zip(wanted, padded, strict=True):
        if new == -1:
            sizes.append(old)
        elif isinstance(new, int) and new < 0:
            raise Mismatch("dimension", "-1 or a size", new, f"expand to a size of {new}")
        elif not is_dim(new):
            sizes.append(symbols.new())
        elif isinstance(old, int) and old != 1 and is_surely_different(new, old):
            text = f"expand to {new} where {tensor.shape} has {old}: only a 1 can be expanded"
            raise Mismatch("broadcast", old, new, text)
        else:
            sizes.append(new)
    return ShapedTensor(Shape(tuple(sizes)))


def repeated(tensor: ShapedTensor, times: Sequence[Value], symbols: Symbols) -> ShapedTensor:
    """Apply repeat: sizes are multiplied."""
    own = tensor.shape.sizes
    if tensor.shape.is_open or len(times) < len(own):
        return ShapedTensor()
    padded: tuple[Dim, ...] = (1,) * (len(times) - len(own)) + own
    pairs = zip(times, padded, strict=True)
    return ShapedTensor(Shape(tuple(t * s if is_dim(t) else symbols.new() for t, s in pairs)))


def chunked(
    tensor: ShapedTensor, count: Value, dim: Value, symbols: Symbols
) -> tuple[ShapedTensor, ...]:
    """Cut into a number of parts."""
    at = None if tensor.shape.is_open else position(dim, len(tensor.shape.sizes))
    if not isinstance(count, int) or count < 1:
        return ()
    if at is None:
        last = tensor.shape.sizes[-1:] if dim == -1 else ()
        exact = divided(last[0], count) if last else None
        one = Shape((exact,), True) if exact is not None else Shape((), True)
        return tuple(ShapedTensor(one) for _ in range(count))
    size = tensor.shape.sizes[at]
    if isinstance(size, int):
        step = -(-size // count)
        parts: list[Dim] = [min(step, size - start) for start in range(0, size, step)]
    else:
        exact = divided(size, count)
        parts = [symbols.new() if exact is None else exact for _ in range(count)]
    return tuple(with_size(tensor, at, part) for part in parts)


def split(tensor: ShapedTensor, wanted: Value, dim: Value, symbols: Symbols) -> Value:
    """Cut into parts of given sizes."""
    at = None if tensor.shape.is_open else position(dim, len(tensor.shape.sizes))
    if at is None:
        return None
    size = tensor.shape.sizes[at]
    if isinstance(wanted, tuple) and wanted and all(is_dim(w) for w in wanted):
        parts = tuple(w for w in wanted if is_dim(w))
        total = reduce(lambda a, b: a + b, parts)
        if is_surely_different(total, size):
            text = f"split into {', '.join(map(str, parts))} = {total} of {size} in {tensor.shape}"
            raise Mismatch("split", size, total, text)
        return tuple(with_size(tensor, at, part) for part in parts)
    if isinstance(wanted, int) and wanted > 0 and isinstance(size, int):
        starts = range(0, size, wanted)
        return tuple(with_size(tensor, at, min(wanted, size - s)) for s in starts)
    exact = divided(size, wanted) if is_dim(wanted) and wanted != 0 else None
    if isinstance(exact, int) and is_dim(wanted):
        return tuple(with_size(tensor, at, wanted) for _ in range(exact))
    return None


def with_size(tensor: ShapedTensor, at: int, size: Dim) -> ShapedTensor:
    """Return a tensor with one size replaced."""
    sizes = list(tensor.shape.sizes)
    sizes[at] = size
    return ShapedTensor(Shape(tuple(sizes)))


def joined(tensors: Sequence[ShapedTensor], dim: Value) -> ShapedTensor:
    """Apply cat."""
    if any(t.shape.is_open for t in tensors) or not tensors:
        return _joined_open(tensors, dim)
    rank = len(tensors[0].shape.sizes)
    if any(len(t.shape.sizes) != rank for t in tensors):
        ranks = " and ".join(str(t.shape) for t in tensors)
        got = next(len(t.shape.sizes) for t in tensors if len(t.shape.sizes) != rank)
        text = f"cat joins tensors of different numbers of dimensions: {ranks}"
        raise Mismatch("concat", f"{rank}D", f"{got}D", text)
    at = position(dim, rank)
    if at is None:
        return ShapedTensor()
    for tensor in tensors[1:]:
        for i, (a, b) in enumerate(zip(tensors[0].shape.sizes, tensor.shape.sizes, strict=True)):
            if i != at and is_surely_different(a, b):
                text = (
                    f"cat along dimension {at} joins {tensors[0].shape} and {tensor.shape}: "
                    f"{a} and {b} differ in dimension {i}"
                )
                raise Mismatch("concat", a, b, text)
    total = reduce(lambda a, b: a + b, (t.shape.sizes[at] for t in tensors))
    return with_size(tensors[0], at, total)


def _joined_open(tensors: Sequence[ShapedTensor], dim: Value) -> ShapedTensor:
    """Join along the last dimension where each of them is known."""
    if dim == -1 and tensors and all(t.shape.sizes for t in tensors):
        total = reduce(lambda a, b: a + b, (t.shape.sizes[-1] for t in tensors))
        return ShapedTensor(Shape((total,), True))
    return ShapedTensor()


def stacked(tensors: Sequence[ShapedTensor], dim: Value) -> ShapedTensor:
    """Apply stack."""
    if any(t.shape.is_open for t in tensors) or not tensors:
        return ShapedTensor()
    first = tensors[0].shape.sizes
    for tensor in tensors[1:]:
        sizes = tensor.shape.sizes
        unequal = len(sizes) != len(first) or any(map(is_surely_different, first, sizes))
        if unequal:
            text = f"stack joins {tensors[0].shape} and {tensor.shape}: every size must be equal"
            raise Mismatch("concat", tensors[0].shape, tensor.shape, text)
    at = position(dim, len(first) + 1)
    return (
        ShapedTensor()
        if at is None
        else ShapedTensor(Shape((*first[:at], len(tensors), *first[at:])))
    )


def cut(size: Dim, start: Value, stop: Value, step: Value, symbols: Symbols) -> Dim:
    """Return the size of a slice."""
    numbers = [n for n in (size, start, stop, step) if n is not None]
    if all(isinstance(n, int) for n in numbers) and isinstance(size, int):
        bounds = slice(*(n if isinstance(n, int) else None for n in (start, stop, step)))
        return len(range(*bounds.indices(size)))
    if not all(is_dim(n) for n in numbers):
        return symbols.new()
    low = start if is_dim(start) else 0
    high = stop if is_dim(stop) else size
    low = size + low if isinstance(low, int) and low < 0 else low
    high = size + high if isinstance(high, int) and high < 0 else high
    if step in (None, 1) and (stop is None or (isinstance(stop, int) and stop < 0) or high == size):
        return high - low
    if step not in (None, 1) and start is None and stop is None and is_dim(step):
        return floor(size - 1, step) + 1
    return symbols.new()
