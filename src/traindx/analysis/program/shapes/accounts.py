"""The arithmetic of shapes in words: 57600 = 64×30×30, and why."""

from __future__ import annotations

from traindx.analysis.program.shapes.forward_traces import ForwardTrace
from traindx.analysis.program.shapes.machine import Conflict, ShapeStep
from traindx.analysis.program.shapes.values import Layer, Shape

MERGING = frozenset({"view", "reshape", "flatten", "Flatten"})
COMMON_CHANNELS = (512, 256, 128, 64, 32, 16, 2048, 1024, 96, 48, 24, 192, 384, 320, 1280, 20, 50,
                   6, 8, 12, 3, 1)  # fmt: skip
MAX_SIDE = 256


def origin_of(trace: ForwardTrace, conflict: Conflict) -> str:
    """Say how the size came about that a layer did not expect; empty where nothing is to say."""
    step = _merging_step(trace, conflict)
    if step is None:
        return ""
    sizes = step.before[0].sizes
    kept = len(step.after[0].sizes) - 1
    parts = "×".join(str(s) for s in sizes[kept:])
    text = f"{conflict.got} = {parts}: {step.before[0]} was flattened on line {step.line}"
    window = _window_of(trace, step)
    return f"{text}; {window}" if window else text


def _merging_step(trace: ForwardTrace, conflict: Conflict) -> ShapeStep | None:
    """The step that merged dimensions into the size in question."""
    for step in reversed(trace.steps):
        if step.operation in MERGING and len(step.before) == 1 and len(step.after) == 1:
            before, after = step.before[0], step.after[0]
            fits = after.sizes and after.sizes[-1] == conflict.got and not before.is_open
            if fits and len(before.sizes) > len(after.sizes):
                return step
    return None


def _window_of(trace: ForwardTrace, merged: ShapeStep) -> str:
    """Say what made the image that was flattened as large as it is."""
    for step in reversed(trace.steps[: trace.steps.index(merged)]):
        layer = step.layer
        if layer is None or not step.before or not step.after or "kernel_size" not in layer.options:
            continue
        if step.after[0].sizes[-2:] == merged.before[0].sizes[-2:]:
            before, after = step.before[0], step.after[0]
            return (
                f"the {window_name(layer)} on line {step.line} turns {area(before)} into "
                f"{area(after)}"
            )
    return ""


def area(shape: Shape) -> str:
    """Return the spatial sizes of a batch of images: 32×32."""
    return "×".join(str(s) for s in shape.sizes[2:]) or str(shape)


def window_name(layer: Layer) -> str:
    """Describe a convolution or pooling by its window: `3×3 convolution without padding`."""
    kernel = layer.options.get("kernel_size")
    count = int(layer.kind[-2]) if layer.kind[-2:-1].isdigit() else 2
    sides = kernel if isinstance(kernel, tuple) else (kernel,) * count
    what = "convolution" if "Conv" in layer.kind else "pooling"
    padding, stride = layer.options.get("padding"), layer.options.get("stride")
    extra = "without padding" if padding in (0, "valid") else f"with padding {padding}"
    jump = "" if stride in (1, None) or stride == kernel else f", stride {stride}"
    return f"{'×'.join(map(str, sides))} {what} {extra}{jump}"


def factorings(size: int, channels: tuple[int, ...] = COMMON_CHANNELS) -> list[str]:
    """Return how a flattened size may be channels × height × width, likeliest first."""
    found = []
    for count in channels:
        if size % count:
            continue
        side = round((size // count) ** 0.5)
        if side > 1 and side <= MAX_SIDE and side * side * count == size:
            found.append(f"{count}×{side}×{side}")
    return found
