"""Initial weights that blow up or shrink what they are applied to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.training.initialisation import (
    Draw,
    draws,
    fan_in,
    is_rescaled,
    is_weight,
)
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.layers import layer_kind
from traindx.analysis.program.training.linearity import WEIGHTED
from traindx.analysis.program.training.ownership import holding_of, optimizers_of
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.step_sizes import is_adaptive

LARGE = 4.0  # times the spread of the input, in each layer; sound rules end at the root of two
SMALL = 0.01  # a narrow transformer begins at 0.1
LAYERS = 2  # a single one may have a reason: a head, a projection of random features
NORMALISES = ("BatchNorm", "InstanceNorm", "GroupNorm")  # the scale of what is before them is lost


@dataclass(frozen=True, slots=True, eq=False)
class MisscaledDraw:
    """The first of several weights that are drawn with a spread out of scale."""

    draw: Draw
    layers: int
    is_large: bool


def misscaled_draws(story: Story) -> Iterator[MisscaledDraw]:
    """Yield the first of the weights that blow up their input, and of those that shrink it."""
    for found, is_large in zip(_out_of_scale(story), (True, False), strict=True):
        if len(found) >= LAYERS:
            yield MisscaledDraw(found[0], len(found), is_large)


def _out_of_scale(story: Story) -> tuple[list[Draw], list[Draw]]:
    """The weights that blow up their input, and those that shrink it to nothing."""
    kinds = [layer_kind(layer) for layer in story.made(Kind.MODEL)]
    if any(kind.startswith(NORMALISES) for kind in kinds):
        return [], []
    weights = [d for d in draws(story) if _is_weight(d) and not is_rescaled(story, d.owner)]
    gains = [(d, d.gain(fan_in(story, d.owner) or 1)) for d in weights]
    holding = holding_of(story, *optimizers_of(story))
    are_plain = not any(is_adaptive(o) for o in optimizers_of(story)) and not holding.is_open
    small = [d for d, gain in gains if 0 < gain < SMALL and are_plain and holding.has(d.owner)]
    return [d for d, gain in gains if gain > LARGE], small


def _is_weight(draw: Draw) -> bool:
    return layer_kind(draw.owner) in WEIGHTED or is_weight(draw.owner)
