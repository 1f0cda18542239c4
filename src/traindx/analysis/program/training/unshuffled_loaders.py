"""Training data that are read in one fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Answer, Result, Site, Value
from traindx.analysis.program.training.claims import node_of
from traindx.analysis.program.training.class_order import class_by_class, sorted_classes
from traindx.analysis.program.training.data import BY_CLASS, Feed, Role, feeds, is_random
from traindx.analysis.program.training.settings import constants_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

# datasets of independent examples, whose order in their files is nothing to learn from
LISTED = frozenset({"MNIST", "FashionMNIST", "CIFAR10", "CIFAR100", "SVHN", "STL10"})


@dataclass(frozen=True, eq=False)
class UnshuffledLoader:
    """A loader that feeds training in a fixed order, and what is known of that order."""

    loader: Value
    says: str
    is_harmful: bool  # else the order may be as good as any


def unshuffled_loaders(story: Story) -> Iterator[UnshuffledLoader]:
    """Yield the loaders of a story that training reads in order, where that order is known."""
    found = feeds(story)
    for feed in found:
        if feed.sampler is not None or not _is_in_order(story, feed):
            continue
        if feed.dataset is None or not _is_trained_from(story, feed, found):
            continue
        name, says = _class_name(feed.dataset), _harm(story, feed.dataset, found)
        if says:
            yield UnshuffledLoader(feed.loader, says, True)
        elif name and not is_random(feed.dataset):
            yield UnshuffledLoader(feed.loader, f"{name} is read in one fixed order", False)


def _harm(story: Story, dataset: Value, found: list[Feed]) -> str:
    """Return what makes the order of a dataset a bad one; empty where nothing is known to."""
    name = _class_name(dataset)
    if name in BY_CLASS:
        return f"{name} lists its images class by class"
    if class_by_class(story, dataset) is not None:
        return "its examples are listed class by class"
    if any(f.role is Role.HELD_OUT and f.shuffles is Answer.YES for f in found):
        return "the one for held-out data does, as if they were swapped"
    return ""


def _is_in_order(story: Story, feed: Feed) -> bool:
    """Tell whether a loader does not shuffle, or not unless the command line says so."""
    if feed.shuffles is not Answer.UNKNOWN or "**" in feed.loader.kwargs:
        return feed.shuffles is Answer.NO
    return constants_of(story, feed.settings.get("shuffle")) == [False]


def _is_trained_from(story: Story, feed: Feed, found: list[Feed]) -> bool:
    """Tell whether a loader feeds training; one that nothing in sight uses is made for that."""
    if feed.trains:
        return True
    if feed.role is not Role.TRAIN or feed.runs or any(f is not feed and f.trains for f in found):
        return False
    twins = [f for f in found if f is not feed and f.role is Role.TRAIN]
    if any(f.shuffles is not Answer.NO or f.sampler is not None for f in twins):
        return False
    return story.escapes(feed.loader) is Answer.NO


def _class_name(dataset: Value) -> str:
    """The class of a dataset whose order is in sight; empty where it is not."""
    if isinstance(dataset, Result):
        last = dataset.maker.rsplit(".", 1)[-1]
        return last if last in BY_CLASS | LISTED else ""
    return ""


@dataclass(frozen=True, eq=False)
class LabelsByClass:
    """Labels that are joined class by class, and where batches are taken in that order."""

    labels: Value
    batches: Site


def labels_by_class(program: Program) -> Iterator[LabelsByClass]:
    """Yield the labels that reach a loss class by class, however they are cut into batches."""
    seen: set[object] = set()
    for loss in program.results("cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"):
        target = loss.operation.argument("target")
        if target is None or loss.event.gradients is Answer.NO or not loss.event.loops:
            continue
        labels = sorted_classes(loss.story, target)
        if labels is None or labels.site is None or node_of(labels) in seen:
            continue
        seen.add(node_of(labels))
        loop = next((x for x in reversed(loss.event.loops) if x.over is not None), None)
        yield LabelsByClass(labels, loss.event.site if loop is None else loop.site)
