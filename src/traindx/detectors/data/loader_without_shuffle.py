"""The training loader reads its dataset in a fixed order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import Loader, loaders_in, resolve
from traindx.source.module import argument
from traindx.source.patches import Edit, diff, replacing
from traindx.source.project import Project

SORTED = frozenset({"ImageFolder", "DatasetFolder"})
MAPS = frozenset({"MNIST", "FashionMNIST", "CIFAR10", "CIFAR100", "SVHN", "STL10", "TensorDataset"})
ORDERED = re.compile(
    r"seq|token|text|corpus|lm\b|char|time|series|window|forecast|lstm|gpt|stateful|video|frame|"
    r"chrono|temporal|stream|curriculum|shuffle|permut",
    re.IGNORECASE,
)


@detector(needs=("source",), suggests=("unshuffled-training-data",))
def check(run: Run) -> Iterator[Finding]:
    """A data loader for training neither shuffles nor samples.

    ## What it detects
    A loader named for training with `shuffle=False` or without the option, and without a sampler,
    over a dataset made in sight. Folders of images by class are sorted by class for certain; other
    datasets with random access are only remarked.

    ## Why it matters
    With data in the order of its classes every batch holds one class: the loss saws up and down and
    the model forgets each class while it sees the next.

    ## What to do
    `DataLoader(…, shuffle=True)`, or a sampler.

    ## When it is wrong
    Sequences that must stay in order, and data that was shuffled beforehand, are right without it;
    files that speak of sequences, time or shuffling are left alone unless the data is sorted.
    """
    project = project_of(run)
    for loader in loaders_in(project):
        if loader.phase != "train" or loader.shuffle is not False or loader.has_sampler:
            continue
        made = resolve(project, loader.module, loader.scope, loader.dataset)
        name = _class_name(loader, made)
        if name in SORTED:
            yield _finding(loader, f"{name} lists its images class by class", is_sorted=True)
        elif _is_map(project, loader, name) and not _is_in_order(loader):
            yield _finding(loader, f"{name or 'its dataset'} is read in one fixed order")


def _finding(loader: Loader, why: str, *, is_sorted: bool = False) -> Finding:
    cause = "unshuffled-training-data"
    return Finding(
        claim=f"The training loader does not shuffle: {why}",
        strength=Strength.STRONG if is_sorted else Strength.MODERATE,
        evidence=(loader.module.cite(loader.call, "no shuffle=True and no sampler here"),),
        suggests={} if is_sorted else {cause: Strength.MODERATE},
        shows=cause if is_sorted else None,
        is_symptom=is_sorted,
        location=loader.module.location(loader.call),
        patch=_patch(loader),
    )


def _class_name(loader: Loader, made: ast.expr | None) -> str:
    name = loader.module.qualified(made.func) if isinstance(made, ast.Call) else None
    return (name or "").rsplit(".", 1)[-1]


def _is_map(project: Project, loader: Loader, name: str) -> bool:
    if name in MAPS:
        return True
    found = project.find_class(loader.module, name) if name else None
    if found is None:
        return False
    home, cls = found
    methods = {n.name for n in cls.body if isinstance(n, ast.FunctionDef)}
    bases = {b.rsplit(".", 1)[-1] for b in project.bases(home, cls)}
    return "__getitem__" in methods and "__iter__" not in methods and "Dataset" in bases


def _is_in_order(loader: Loader) -> bool:
    """Tell whether the file gives a reason for a fixed order, or has shuffled already."""
    has_reason = bool(ORDERED.search(loader.module.text.replace("shuffle=False", "")))
    is_whole = any("len(" in ast.unparse(a) for a in (*loader.call.args[1:], *_values(loader.call)))
    is_split = "random_split" in loader.module.text or "train_test_split" in loader.module.text
    return has_reason or is_whole or is_split


def _values(call: ast.Call) -> list[ast.expr]:
    return [k.value for k in call.keywords]


def _patch(loader: Loader) -> str | None:
    given = argument(loader.call, "shuffle")
    if given is not None:
        return diff(loader.module, replacing(given, "True"))
    parts: list[ast.expr] = [*loader.call.args, *_values(loader.call)]
    if not parts:
        return None
    last = max(parts, key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0))
    line, end = last.end_lineno or last.lineno, last.end_col_offset or 0
    return diff(loader.module, Edit(line, end, line, end, ", shuffle=True"))


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


FIRES = {
    "a folder by class": _program(_FOLDER),
    "said so": _program(_FOLDER, ", shuffle=False"),
    "a remark": _program('MNIST("data", train=True)'),
}

SILENT = {
    "shuffled": _program(_FOLDER, ", shuffle=True"),
    "near miss: a sampler": _program(_FOLDER, ", sampler=sampler"),
    "near miss: decided at run time": _program(_FOLDER, ", shuffle=sampler is None"),
    "near miss: validation": make_run(
        sources={
            "t.py": "from torch.utils.data import DataLoader\nfrom torchvision import datasets\n"
            "val_loader = DataLoader(datasets.ImageFolder('val'), batch_size=8)\n"
        }
    ),
}
