"""Every worker of a loader draws the same random numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import Loader, loaders_in, resolve
from traindx.source.module import Module, argument, key_of
from traindx.source.project import Project

GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random")


@detector(needs=("source",), suggests=("worker-seed-duplication",))
def check(run: Run) -> Iterator[Finding]:
    """A dataset draws from a generator that every worker has a copy of.

    ## What it detects
    A dataset that makes a NumPy or Python generator in `__init__` and draws from it in
    `__getitem__`, loaded by two or more workers without a `worker_init_fn`.

    ## Why it matters
    Each worker gets a copy of the dataset, generator included, in the same state: all of them draw
    the same numbers, and draw them again in every epoch. Augmentation loses its variety.

    ## What to do
    Make the generator in the worker: from `torch.utils.data.get_worker_info().seed`, or in
    `worker_init_fn`. The global `np.random` is seeded per worker by torch since 1.9.

    ## When it is wrong
    A dataset that asks for its worker is left alone.
    """
    project = project_of(run)
    for loader in loaders_in(project):
        if (loader.workers or 0) < 2 or argument(loader.call, "worker_init_fn") is not None:
            continue
        made = resolve(project, loader.module, loader.scope, loader.dataset)
        name = loader.module.qualified(made.func) if isinstance(made, ast.Call) else None
        found = project.find_class(loader.module, name) if name else None
        drawn = _drawn(project, *found) if found is not None else None
        if found is None or drawn is None:
            continue
        home, cls = found
        yield _finding(loader, home, cls, drawn)


def _finding(
    loader: Loader, home: Module, cls: ast.ClassDef, drawn: tuple[ast.AST, str]
) -> Finding:
    node, generator = drawn
    return Finding(
        claim=f"All {loader.workers} workers draw the same numbers from `{generator}` "
        f"of `{cls.name}`",
        strength=Strength.STRONG,
        evidence=(
            home.cite(node, f"{generator} is made once and copied into every worker"),
            loader.module.cite(loader.call, f"{loader.workers} workers, no worker_init_fn"),
        ),
        shows="worker-seed-duplication",
        is_symptom=True,
        location=home.location(node),
    )


def _drawn(project: Project, module: Module, cls: ast.ClassDef) -> tuple[ast.AST, str] | None:
    """The generator that `__getitem__` draws from and `__init__` makes."""
    methods = {n.name: n for n in cls.body if isinstance(n, ast.FunctionDef)}
    start, item = methods.get("__init__"), methods.get("__getitem__")
    if start is None or item is None or "worker" in ast.unparse(cls):
        return None
    for key, values in project.bindings(start).items():
        for value in values:
            name = module.qualified(value.func) if isinstance(value, ast.Call) else None
            is_own = name in GENERATORS and key.startswith("self.")
            if is_own and any(key_of(n) == key for n in ast.walk(item)):
                return value, key
    return None


_PROGRAM = """
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self, seed):
        self.rng = {made}

    def __getitem__(self, i):
        return self.images[i] + {draw}

train_loader = DataLoader(Images(0), num_workers={workers}, shuffle=True{options})
"""


def _program(
    made: str = "np.random.default_rng(seed)",
    draw: str = "self.rng.normal()",
    workers: int = 4,
    options: str = "",
) -> Run:
    text = _PROGRAM.format(made=made, draw=draw, workers=workers, options=options)
    return make_run(sources={"train.py": text})


FIRES = {"a generator of the dataset": _program()}

SILENT = {
    "in the main process": _program(workers=0),
    "near miss: the global generator": _program("None", "np.random.normal()"),
    "near miss: seeded by worker": _program(options=", worker_init_fn=seed_worker"),
}
