"""Loaders for held-out data that give training examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import node_of, shown
from traindx.analysis.program.training.loaders import (
    dataset_of,
    has_sampler,
    is_held_out,
    is_loader,
    is_switched,
    named_loaders,
    same_data,
    same_selection,
)
from traindx.analysis.program.training.phases import Loop, evaluations, loops_of, phase_word
from traindx.analysis.program.training.same_rows import overlap, same_rows

if TYPE_CHECKING:
    from traindx.analysis.program.training.claims import Where
    from traindx.analysis.program.training.program import Story


@dataclass(frozen=True, eq=False)
class RepeatedData:
    """A loader for held-out data that gives the examples of one for training."""

    story: Story
    train_name: str
    train: Value
    name: str
    held: Value

    @property
    def node(self) -> object:
        return node_of(self.held)

    @property
    def place(self) -> Where:
        """Where the data are made."""
        is_loader = self.train is self.held
        return shown(None if is_loader else dataset_of(self.held), self.held)

    @property
    def says(self) -> str:
        """In what way the examples are the same; empty where they may not be."""
        one, other = self.train, self.held
        if one is other:
            return f"the same loader as {self.train_name}"
        if has_sampler(one) or has_sampler(other):
            return ""
        shared = overlap(self.story, one, other)
        if shared:
            return f"it shares rows with {self.train_name}, for {shared}"
        return f"it reads the same data as {self.train_name}" if self._is_same() else ""

    def _is_same(self) -> bool:
        one, other, data = self.train, self.held, dataset_of(self.train)
        if not same_data(data, dataset_of(other)) and not same_rows(self.story, one, other):
            return False
        is_open = data is None or is_switched(self.story, data, [one, other])
        return not is_open and same_selection(one, other)


def repeated_data(story: Story) -> Iterator[RepeatedData]:
    """Yield the loaders for held-out data that give training examples."""
    yield from (pair for pair in _pairs(story) if pair.says)


def _pairs(story: Story) -> Iterator[RepeatedData]:
    """Pairs of loaders: one that is trained on, and one for held-out data."""
    for loaders in named_loaders(story):
        trained = [(n, v) for n, v in loaders.items() if phase_word(n) == "train"]
        held = [(n, v) for n, v in loaders.items() if is_held_out(n)]
        yield from (RepeatedData(story, *t, *h) for t in trained for h in held)
    over = [x.over for x in loops_of(story) if x.does(Do.BACKWARD) and x.over is not None]
    for evaluation in evaluations(story):
        held_out = None if evaluation.loop is None else evaluation.loop.over
        if held_out is not None and is_loader(held_out):
            name = next((n for n in sorted(held_out.names) if is_held_out(n)), evaluation.split)
            if not name and _runs_over_others(story, evaluation.loop):
                continue  # the score on training data, beside that on others
            name = name or "the evaluation"
            others = [v for v in over if is_loader(v) and v is not held_out]
            yield from (RepeatedData(story, _train_name(v), v, name, held_out) for v in others)


def _runs_over_others(story: Story, loop: Loop | None) -> bool:
    """Tell whether a loop of a function goes over several data in the course of a program."""
    runs = (r for e in story.events for r in e.loops)
    same = [r for r in runs if loop is not None and r.site.node is loop.run.site.node]
    return len({id(dataset_of(r.over)) for r in same if r.over is not None}) > 1


def _train_name(loader: Value) -> str:
    return next((n for n in sorted(loader.names) if phase_word(n) == "train"), "the training data")
