"""Layers that slide a window: convolutions, pooling, upsampling, padding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traindx.analysis.program.shapes.sizes import (
    Dim,
    Size,
    divided,
    floor,
    is_dim,
    is_surely_different,
    product,
    symbol,
)
from traindx.analysis.program.shapes.values import Layer, Mismatch, Shape, ShapedTensor, Value


@dataclass(slots=True)
class Symbols:
    """A supply of new symbols, and what was assumed of inputs whose shape nobody gave."""

    count: int = 0
    assumed: dict[str, Shape] = field(default_factory=dict)

    def new(self, hint: str = "?") -> Size:
        self.count += 1
        return symbol(f"{hint}{self.count}")

    def closed(self, tensor: ShapedTensor, rank: int) -> tuple[Dim, ...]:
        """Return a tensor's sizes where it has that many; an open shape is taken to have them."""
        sizes = tensor.shape.sizes
        if not tensor.shape.is_open or len(sizes) >= rank:
            return sizes
        lead = tuple(self.new() for _ in range(rank - len(sizes)))
        return (*lead, *sizes)

    def assume(self, tensor: ShapedTensor, shape: Shape) -> None:
        """Remember what the first use of an input tells about it."""
        if tensor.origin and tensor.shape.is_open:
            self.assumed.setdefault(tensor.origin, shape)


IMAGE = ("L",), ("H", "W"), ("D", "H", "W")


def dimensions(kind: str) -> int:
    """Return the number of spatial dimensions that a layer's name ends in."""
    return int(kind[-2]) if kind[-2:-1].isdigit() else 2


def each(value: Value, count: int) -> tuple[Dim, ...] | None:
    """Spread an option over the spatial dimensions; None where it is not known."""
    if is_dim(value):
        return (value,) * count
    if isinstance(value, tuple) and value and all(is_dim(v) for v in value):
        sizes = tuple(v for v in value if is_dim(v))
        return sizes * count if len(sizes) == 1 else sizes if len(sizes) == count else None
    return None


def spatial(tensor: ShapedTensor, count: int, symbols: Symbols, what: str) -> tuple[Dim, ...]:
    """Return an image's sizes with its channels; another number of dimensions is a mismatch."""
    sizes = symbols.closed(tensor, count + 2)
    if len(sizes) not in (count + 1, count + 2):
        wanted = f"{count + 1}D (unbatched) or {count + 2}D (batched)"
        text = f"{what} takes {wanted} input and receives {len(sizes)}D: {tensor.shape}"
        raise Mismatch("rank", wanted, f"{len(sizes)}D", text)
    return sizes


def convolved(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> ShapedTensor:
    """Apply a convolution."""
    count = dimensions(layer.kind)
    channels, out = layer.number("in_channels"), layer.number("out_channels")
    if channels is not None:
        names = tuple(symbol(n) for n in IMAGE[count - 1])
        symbols.assume(tensor, Shape((symbol("B"), channels, *names)))
    sizes = spatial(tensor, count, symbols, layer.kind)
    got = sizes[-count - 1]
    if channels is not None and is_surely_different(channels, got):
        text = f"{layer.kind} was built for {channels} channels and receives {got}: {tensor.shape}"
        raise Mismatch("channels", channels, got, text)
    window = _transposed_window if "Transpose" in layer.kind else _window
    area = window(layer.options, sizes[-count:], symbols)
    made = symbols.new() if out is None else out
    return ShapedTensor(Shape((*sizes[: -count - 1], made, *area)))


def _window(
    options: Mapping[str, Value], area: tuple[Dim, ...], symbols: Symbols
) -> tuple[Dim, ...]:
    count, given = len(area), options.get("padding", 0)
    if given == "same":
        return area
    padding = (0,) * count if given == "valid" else each(given, count)
    kernel, stride = each(options.get("kernel_size"), count), each(options.get("stride"), count)
    dilation = each(options.get("dilation", 1), count)
    if padding is None or kernel is None or stride is None or dilation is None:
        return tuple(symbols.new() for _ in area)
    is_ceiling = options.get("ceil_mode", False)
    found = []
    for n, k, s, p, d in zip(area, kernel, stride, padding, dilation, strict=True):
        span = n + 2 * p - d * (k - 1) - 1
        if isinstance(span, int) and span < 0 and not (is_ceiling and isinstance(s, int)):
            text = f"a window of {d * (k - 1) + 1} does not fit into {n} with padding {p}"
            raise Mismatch("window", f"at least {d * (k - 1) + 1 - 2 * p}", n, text)
        found.append(_ceiled(n, span, s, p, symbols) if is_ceiling else floor(span, s) + 1)
    return tuple(found)


def _ceiled(size: Dim, span: Dim, stride: Dim, padding: Dim, symbols: Symbols) -> Dim:
    if not all(isinstance(v, int) for v in (size, span, stride, padding)):
        return symbols.new()
    count = -(-span // stride) + 1
    fits = (count - 1) * stride - size - padding
    return count - 1 if isinstance(fits, int) and fits >= 0 else count


def _transposed_window(
    options: Mapping[str, Value], area: tuple[Dim, ...], symbols: Symbols
) -> tuple[Dim, ...]:
    count = len(area)
    names = ("kernel_size", "stride", "padding", "dilation", "output_padding")
    parts = [each(options.get(name), count) for name in names]
    if any(part is None for part in parts):
        return tuple(symbols.new() for _ in area)
    columns = zip(area, *(part for part in parts if part is not None), strict=True)
    return tuple((n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, d, o in columns)


def pooled(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    """Apply a pooling layer."""
    count = dimensions(layer.kind)
    sizes = spatial(tensor, count, symbols, layer.kind)
    if layer.kind.startswith("Adaptive"):
        area = _adapted(layer.options.get("output_size"), sizes[-count:], symbols)
    else:
        stride = layer.options.get("stride")
        chosen = layer.options.get("kernel_size") if stride is None else stride
        area = _window({**layer.options, "stride": chosen}, sizes[-count:], symbols)
    result = ShapedTensor(Shape((*sizes[:-count], *area)))
    return (result, result) if layer.options.get("return_indices") is True else result


def _adapted(wanted: Value, area: tuple[Dim, ...], symbols: Symbols) -> tuple[Dim, ...]:
    if is_dim(wanted):
        return (wanted,) * len(area)
    if isinstance(wanted, tuple) and len(wanted) == len(area):
        chosen = zip(wanted, area, strict=True)
        return tuple(n if w is None else w if is_dim(w) else symbols.new() for w, n in chosen)
    return tuple(symbols.new() for _ in area)


def upsampled(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> ShapedTensor:
    """Apply Upsample or interpolate."""
    if tensor.shape.is_open:
        return ShapedTensor()
    sizes, count = tensor.shape.sizes, len(tensor.shape.sizes) - 2
    given, factor = layer.options.get("size"), layer.options.get("scale_factor")
    if isinstance(given, tuple) and len(given) != count:
        text = f"a size of {len(given)} dimensions for an input of {count} in {tensor.shape}"
        raise Mismatch("dimension", f"{count} sizes", len(given), text)
    wanted = each(given, count)
    if wanted is not None:
        return ShapedTensor(Shape((*sizes[:2], *wanted)))
    if isinstance(factor, (int, float)):
        factor = (factor,) * count
    if isinstance(factor, tuple) and len(factor) == count:
        area = [_scaled(n, f, symbols) for n, f in zip(sizes[2:], factor, strict=True)]
        return ShapedTensor(Shape((*sizes[:2], *area)))
    return ShapedTensor(Shape((*sizes[:2], *(symbols.new() for _ in sizes[2:]))))


def _scaled(size: Dim, factor: Value, symbols: Symbols) -> Dim:
    if not isinstance(factor, (int, float)) or not math.isfinite(factor):
        return symbols.new()
    if isinstance(size, int):
        return int(size * factor)
    if factor == int(factor):
        return size * int(factor)
    if factor > 0 and 1 / factor == int(1 / factor):
        return floor(size, int(1 / factor))
    return symbols.new()


def shuffled(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> ShapedTensor:
    """Apply PixelShuffle or its inverse."""
    is_up = layer.kind == "PixelShuffle"
    factor = layer.number("upscale_factor" if is_up else "downscale_factor")
    if tensor.shape.is_open or factor is None or len(tensor.shape.sizes) < 3:
        return ShapedTensor()
    *lead, channels, height, width = tensor.shape.sizes
    if not is_up:
        area = (channels * factor * factor, floor(height, factor), floor(width, factor))
        return ShapedTensor(Shape((*lead, *area)))
    kept = divided(channels, factor * factor)
    if kept is None and isinstance(channels, int) and isinstance(factor, int):
        text = f"PixelShuffle({factor}) needs channels divisible by {factor**2}, got {channels}"
        raise Mismatch("channels", f"a multiple of {factor**2}", channels, text)
    left = symbols.new() if kept is None else kept
    return ShapedTensor(Shape((*lead, left, height * factor, width * factor)))


def padded(tensor: ShapedTensor, pads: Value, symbols: Symbols) -> ShapedTensor:
    """Pad the last dimensions: pairs of before and after, last dimension first."""
    sizes = list(tensor.shape.sizes)
    if not isinstance(pads, tuple) or len(pads) % 2 or len(pads) // 2 > len(sizes):
        return (
            ShapedTensor()
            if tensor.shape.is_open
            else ShapedTensor(Shape(_fresh(len(sizes), symbols)))
        )
    for i in range(0, len(pads), 2):
        before, after, at = pads[i], pads[i + 1], -1 - i // 2
        known = is_dim(before) and is_dim(after)
        sizes[at] = sizes[at] + before + after if known else symbols.new()
    return ShapedTensor(Shape(tuple(sizes), tensor.shape.is_open))


def unfolded(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> ShapedTensor:
    """Apply Unfold: every window becomes a column."""
    kernel = each(layer.options.get("kernel_size"), 2)
    if tensor.shape.rank != 4 or kernel is None:
        return ShapedTensor()
    batch, channels, *area = tensor.shape.sizes
    found = _window(layer.options, tuple(area), symbols)
    return ShapedTensor(Shape((batch, channels * product(kernel), product(found))))


def slid(tensor: ShapedTensor, window: Sequence[Value], symbols: Symbols) -> ShapedTensor:
    """Apply `Tensor.unfold`: windows of one dimension, whose elements come last."""
    sizes = list(tensor.shape.sizes)
    dim, length, step = window
    is_inside = isinstance(dim, int) and -len(sizes) <= dim < len(sizes)
    if tensor.shape.is_open or not is_inside or not isinstance(dim, int) or not is_dim(length):
        return ShapedTensor()
    whole = sizes[dim]
    if isinstance(whole, int) and isinstance(length, int) and isinstance(step, int) and step > 0:
        sizes[dim] = (whole - length) // step + 1
    else:
        sizes[dim] = symbols.new()
    return ShapedTensor(Shape((*sizes, length)))


def _fresh(count: int, symbols: Symbols) -> tuple[Dim, ...]:
    return tuple(symbols.new() for _ in range(count))
