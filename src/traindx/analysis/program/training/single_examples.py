"""Batch norm over batches of one example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.layers import layers_in
from traindx.analysis.program.training.loaders import (
    batch_size,
    cut_into_ones,
    has_sampler,
    is_loader,
)
from traindx.analysis.program.training.phases import source_of, training_passes

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


@dataclass(frozen=True, eq=False)
class NormOfSingleExample:
    """A training pass through batch norm of one example, and what it comes from."""

    event: ProgramEvent
    loader: Value
    norm: str
    is_cut: bool  # out of a larger batch


def norms_of_single_examples(story: Story) -> Iterator[NormOfSingleExample]:
    """Yield the training passes of a story that run batch norm on one example at a time."""
    for event, _ in training_passes(story):
        cut = cut_into_ones(event.args[0] if event.args else None)
        loader = cut or _loader_of_one(story, event)
        layers = [layer.maker.rsplit(".", 1)[-1] for layer in layers_in(event.receiver)]
        norms = sorted(name for name in layers if "BatchNorm" in name)
        if loader is not None and norms:
            yield NormOfSingleExample(event, loader, norms[0], cut is not None)


def _loader_of_one(story: Story, event: ProgramEvent) -> Value | None:
    """The loader of single examples that the batches of a call come from."""
    for loop in reversed(event.loops):
        over = None if loop.over is None else source_of(loop.over)
        if over is not None and is_loader(over):
            return over if batch_size(story, over) == 1 and not has_sampler(over) else None
    return None
