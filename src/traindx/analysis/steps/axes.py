"""Which dimension an operation works over: that of the examples, or that of the classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from traindx.analysis.steps.step_graph import Act, Step
from traindx.model.recording import Shape

NORMALISES = ("softmax", "log_softmax")
RESHAPES = ("view", "reshape", "unsafe_view", "reshape_alias")
IMAGE = 4  # dimensions: examples, channels, height and width
SQUARE = 2  # different sizes among channels, height and width
CHANNELS = 4  # at most, of a picture


def batch_size(step: Step) -> int | None:
    """Return the number of examples that the loader gave; None where no loader did."""
    sizes = {n.shape[0] for n in step.nodes if n.is_batch and n.shape}
    return sizes.pop() if len(sizes) == 1 else None


def normalised_over_examples(step: Step) -> Iterator[Act]:
    """Yield each softmax that makes the examples of a batch add up to one."""
    size = batch_size(step)
    for act in step.named(*NORMALISES):
        shape = act.inputs[0].shape if act.inputs else ()
        is_table = len(shape) == 2 and shape[0] == size and shape[1] not in (size, 1)
        if is_table and act.dims == (0,) and act.inputs[0] in step.parametric:
            yield act


@dataclass(frozen=True)
class SwappingView:
    """A line of the user's whose view swaps dimensions every time that it runs."""

    act: Act
    is_certain: bool  # it does so for several shapes: no coincidence of sizes


def reorderings(steps: Iterable[Step]) -> Iterator[SwappingView]:
    """Yield the views that put the same sizes into another order, and leave the values.

    Splitting heads gives such sizes by coincidence, for one batch size and not for the next.
    """
    by_line: dict[object, list[Act]] = {}
    for step in steps:
        for act in step.named(*RESHAPES):
            if act.inputs and act.outputs and act.record.is_direct:
                by_line.setdefault(act.place, []).append(act)
    for acts in by_line.values():
        shapes = {(a.inputs[0].shape, a.outputs[0].shape) for a in acts}
        if all(_is_reordered(*pair) for pair in shapes):
            yield SwappingView(acts[0], len(shapes) > 1 or _is_image(acts[0].inputs[0].shape))


def _is_image(shape: Shape) -> bool:
    """Tell whether sizes are those of images with their channels, which heads do not have."""
    return len(shape) == IMAGE and len(set(shape[1:])) == SQUARE and min(shape[1:]) <= CHANNELS


def _is_reordered(before: Shape, after: Shape) -> bool:
    old, new = [n for n in before if n > 1], [n for n in after if n > 1]
    return len(old) > 1 and len(before) == len(after) and old != new and sorted(old) == sorted(new)
