"""The training loader reads its dataset in a fixed order."""

from traindx.analysis.program.execution.values import Answer, Result, Value
from traindx.analysis.program.training.claims import cite, finding, set_argument
from traindx.analysis.program.training.class_order import class_by_class, sorted_classes
from traindx.analysis.program.training.data import (
    BY_CLASS,
    Feed,
    Role,
    feeds,
    is_random,
)
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.analysis.program.training.settings import constants_of
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

# datasets of independent examples, whose order in their files is nothing to learn from
LISTED = frozenset({"MNIST", "FashionMNIST", "CIFAR10", "CIFAR100", "SVHN", "STL10"})
CAUSE = "unshuffled-training-data"


@detector(needs=("source",), suggests=("unshuffled-training-data",))
def check(run: Run) -> Findings:
    """A data loader for training neither shuffles nor samples.

    ## What it detects
    A loader that training consumes, with `shuffle=False` or without the option, and without a
    sampler, over a dataset made in sight. Folders of images by class are sorted by class for
    certain, as are lists that are filled class by class; other datasets with random access are only
    remarked, unless the loader for held-out data shuffles: the two are swapped. Also labels that
    were joined class by class (`np.concatenate([np.zeros(n), np.ones(n)])`) and reach the loss in
    that order, with or without a loader.

    ## Why it matters
    With data in the order of its classes every batch holds one class: the loss saws up and down and
    the model forgets each class while it sees the next.

    ## What to do
    `DataLoader(…, shuffle=True)`, or a sampler.

    ## When it is wrong
    Sequences that must stay in order, and data that was shuffled beforehand, are right without it;
    a dataset in whose making random numbers have a part is left alone, and so is one that is split
    at random. A loader that only reads the training set (for features, for a score beside the
    shuffled loader) is left alone, too.
    """
    seen: set[object] = set()
    program = program_of(run)
    yield from _by_class(program, seen)
    for story in program.stories:
        found = feeds(story)
        for feed in found:
            if feed.sampler is not None or not _is_in_order(story, feed):
                continue
            place = feed.loader.site.node if feed.loader.site is not None else None
            if place in seen or feed.dataset is None or not _is_trained_from(story, feed, found):
                continue
            seen.add(place)
            name = _class_name(feed.dataset)
            if name in BY_CLASS:
                yield _sorted(feed, f"{name} lists its images class by class")
            elif class_by_class(story, feed.dataset) is not None:
                yield _sorted(feed, "its examples are listed class by class")
            elif any(f.role is Role.HELD_OUT and f.shuffles is Answer.YES for f in found):
                yield _sorted(feed, "the one for held-out data does, as if they were swapped")
            elif name and not is_random(feed.dataset):
                yield _remark(feed, f"{name} is read in one fixed order")


def _is_in_order(story: Story, feed: Feed) -> bool:
    """Tell whether a loader does not shuffle, or not unless the command line says so."""
    if feed.shuffles is not Answer.UNKNOWN or "**" in feed.loader.kwargs:
        return feed.shuffles is Answer.NO
    return constants_of(story, feed.settings.get("shuffle")) == [False]


def _by_class(program: Program, seen: set[object]) -> Findings:
    """Losses whose labels come class by class, in whatever way they are cut into batches."""
    for loss in program.results("cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"):
        target = loss.operation.argument("target")
        if target is None or loss.event.gradients is Answer.NO or not loss.event.loops:
            continue
        found = sorted_classes(loss.story, target)
        if found is None or found.site is None or found.site.node in seen:
            continue
        seen.add(found.site.node)
        loop = next((x for x in reversed(loss.event.loops) if x.over is not None), None)
        at = loss.event.site if loop is None else loop.site
        yield finding(
            "The training data are in the order of their classes and never shuffled",
            CAUSE,
            at,
            cite(found, "labels are joined class by class here"),
            cite(at, "batches are taken in that order here"),
            is_symptom=True,
        )


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


def _sorted(feed: Feed, why: str) -> Finding:
    return finding(
        f"The training loader does not shuffle: {why}",
        CAUSE,
        feed.loader,
        cite(feed.loader, "no shuffle=True and no sampler here"),
        is_symptom=True,
        patch=set_argument(feed.loader, "shuffle", "True"),
    )


def _remark(feed: Feed, why: str) -> Finding:
    loader = feed.loader
    assert loader.site is not None
    return Finding(
        claim=f"The training loader does not shuffle: {why}",
        strength=Strength.MODERATE,
        evidence=(cite(loader, "no shuffle=True and no sampler here"),),
        suggests={CAUSE: Strength.MODERATE},
        location=loader.site.module.location(loader.site.node),
        patch=set_argument(loader, "shuffle", "True"),
    )


_PROGRAM = """
import torch
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.{dataset}
train_loader = DataLoader(data, batch_size=32{options})
"""
_FOLDER = 'ImageFolder("train")'


def _program(dataset: str, options: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(dataset=dataset, options=options)})


_FEATURES = """
import torch
from torch.utils.data import DataLoader
from torchvision import datasets

train_loader = DataLoader(datasets.ImageFolder("train"), batch_size=32)

@torch.no_grad()
def extract(loader):
    return torch.cat([net(x) for x, _ in loader])

bank = extract(train_loader)
"""
_LOOPED = """
import torch
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.ImageFolder("train")
train_loader = DataLoader(data, batch_size=32{options})
train_reader = DataLoader(data, batch_size=99)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(loader):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

train(train_loader)
score(train_reader)
"""


def _looped(options: str) -> Run:
    return make_run(sources={"train.py": _LOOPED.format(options=options)})


_JOINED = """
import numpy as np
import torch

x = torch.tensor(np.concatenate([cats, dogs]))
y = torch.tensor(np.concatenate([np.zeros(len(cats)), np.ones(len(dogs))]))
{order}
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    for start in range(0, len(x), 32):
        optimizer.zero_grad()
        scores = model(x[start : start + 32])
        torch.nn.functional.cross_entropy(scores, y[start : start + 32].long()).backward()
        optimizer.step()
"""
_MIXED = "order = torch.randperm(len(x))\nx, y = x[order], y[order]"

FIRES = {
    "joined class by class, without a loader": make_run(
        sources={"train.py": _JOINED.format(order="")}
    ),
    "a folder by class": _program(_FOLDER),
    "said so": _program(_FOLDER, ", shuffle=False"),
    "handed to a function that trains": _looped(""),
    "a remark": _program('MNIST("data", train=True)'),
}

SILENT = {
    "near miss: joined class by class, then mixed": make_run(
        sources={"train.py": _JOINED.format(order=_MIXED)}
    ),
    "shuffled": _program(_FOLDER, ", shuffle=True"),
    "near miss: a sampler": _program(_FOLDER, ", sampler=sampler"),
    "near miss: decided at run time": _program(_FOLDER, ", shuffle=sampler is None"),
    "near miss: read for its features": make_run(sources={"train.py": _FEATURES}),
    "near miss: scored beside the shuffled one": _looped(", shuffle=True"),
    "near miss: validation": make_run(
        sources={
            "t.py": "from torch.utils.data import DataLoader\nfrom torchvision import datasets\n"
            "val_loader = DataLoader(datasets.ImageFolder('val'), batch_size=8)\n"
        }
    ),
}
