"""The training loader reads held-out data among its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import Loader, loaders_in, phase_of, resolve
from traindx.source.module import Module, key_of
from traindx.source.project import Project

JOINS = frozenset({"ConcatDataset", "ChainDataset", "cat", "concat", "concatenate", "vstack"})
HELD = ("val", "test")


@detector(needs=("source",), suggests=("data-leakage",))
def check(run: Run) -> Iterator[Finding]:
    """The training loader reads a joined dataset, and a held-out loader reads one of its parts.

    ## What it detects
    `DataLoader(ConcatDataset([train_set, test_set]))`, `train_set + test_set` or joined tensors
    behind the training loader, while a loader named for validation or testing reads that very
    `test_set`.

    ## Why it matters
    The model has seen what it is tested on. The metric is that of the training data, and says
    nothing about new data.

    ## What to do
    Train on the training part alone; augment it by data that no held-out set holds.

    ## When it is wrong
    After a choice is made on validation data, training on both is common; then the validation
    metric of that last training means nothing, while the test set is untouched.
    """
    project = project_of(run)
    loaders = loaders_in(project)
    for train in loaders:
        if phase_of(train.name) != "train" or _is_made_again(train, loaders):
            continue
        parts = _parts(project, train)
        for held in loaders:
            if phase_of(held.name) not in HELD or held.scope is not train.scope:
                continue
            shared = [p for p in parts if p in _names(project, held)]
            if shared:
                yield _finding(train, held, shared[0])
                return


def _is_made_again(train: Loader, loaders: tuple[Loader, ...]) -> bool:
    return sum(x.name == train.name and x.scope is train.scope for x in loaders) != 1


def _finding(train: Loader, held: Loader, shared: str) -> Finding:
    return Finding(
        claim=f"`{train.name}` reads `{shared}`, on which `{held.name}` tests",
        strength=Strength.STRONG,
        evidence=(
            train.module.cite(train.call, f"{shared} is joined to the training data here"),
            held.module.cite(held.call, "and is held out here"),
        ),
        shows="data-leakage",
        is_symptom=True,
        location=train.module.location(train.call),
    )


def _parts(project: Project, loader: Loader) -> list[str]:
    """The names that are joined to what a loader reads."""
    made = resolve(project, loader.module, loader.scope, loader.dataset)
    if made is None:
        return []
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add):
        return [k for n in (made.left, made.right) if (k := key_of(n))]
    calls = [(c, n) for c, n in _calls(loader.module, made) if n.rsplit(".", 1)[-1] in JOINS]
    given = [a for c, _ in calls for a in c.args[:1] if isinstance(a, (ast.List, ast.Tuple))]
    return [k for a in given for e in a.elts if (k := key_of(e))]


def _calls(module: Module, node: ast.expr) -> Iterator[tuple[ast.Call, str]]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            yield inner, module.qualified(inner.func) or ast.unparse(inner.func)


def _names(project: Project, loader: Loader) -> set[str]:
    """What a loader reads: its dataset's name, and the tensors that it is made of."""
    own = key_of(loader.dataset) if loader.dataset is not None else None
    made = resolve(project, loader.module, loader.scope, loader.dataset)
    given = made.args if isinstance(made, ast.Call) else []
    names = {own} | {key_of(a) for a in given if isinstance(a, (ast.Name, ast.Attribute))}
    return {n for n in names if n and phase_of(n) in HELD}


_PROGRAM = """
from torch.utils.data import ConcatDataset, DataLoader, random_split

train_set, test_set = random_split(dataset, [0.9, 0.1])
{made}
train_loader = DataLoader({train}, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=32)
"""


def _program(train: str, made: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(train=train, made=made)})


FIRES = {
    "joined": _program("ConcatDataset([train_set, test_set])"),
    "added": _program("train_set + test_set"),
    "under a name": _program("everything", "everything = ConcatDataset([train_set, test_set])"),
}

SILENT = {
    "apart": _program("train_set"),
    "near miss: joined with more training data": _program("ConcatDataset([train_set, extra_set])"),
    "near miss: joined for another purpose": _program(
        "train_set", "mean = compute_mean(ConcatDataset([train_set, test_set]))"
    ),
}
