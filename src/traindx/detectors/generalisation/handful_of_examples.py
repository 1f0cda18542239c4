"""The training data is cut down to a handful of examples, and validation stays behind."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from traindx.evidence import Finding, Strength, cite
from traindx.examples import decay
from traindx.model import Floats, Run, Series, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, argument, literal

CAUSE = "overfitting"
HANDFUL = 100  # examples
BEHIND = 1.2  # the validation loss over that of training, at the end
WIDENED = 1.1  # what the gap is at the end over what it was at the start
ENOUGH = 5  # evaluations
RANGES = frozenset({"range", "numpy.arange", "torch.arange"})
WRAPPERS = frozenset({"list", "tuple", "sorted", "numpy.array", "torch.tensor"})


@detector(needs=("source", "loss", "*/val*"), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """A subset of a hundred examples or fewer is trained on, and validation does not keep up.

    ## What it detects
    A `Subset` of training data, or a `select` of it, whose indices are written down and are a
    hundred different ones at most, however often each is repeated; and a validation loss that ends
    a fifth above that of training, after a start at which they were nearer.

    ## Why it matters
    Subsets are made to try out a program. One that is left in, or repeated to fill an epoch, is
    learnt by heart.

    ## What to do
    Train on all of the data. If there is no more: augmentation, a smaller model, early stopping.

    ## When it is wrong
    Learning from a few examples may be the task, and a gap its price.
    """
    train, val = run.objective(), run.main_loss("val")
    if train is None or val is None or len(val.finite()) < ENOUGH or len(train.finite()) < ENOUGH:
        return
    if not _stays_behind(train.finite().values, val.finite().values):
        return
    for module in project_of(run).training_modules:
        for call, name in module.calls():
            given = _indices(call, name)
            count = _different(module, given) if given is not None else None
            if count is not None and count <= HANDFUL and _is_training(module, call):
                yield _finding(module, call, count, train.finite(), val.finite())
                return


def _stays_behind(train: Floats, val: Floats) -> bool:
    first, last = (_level(train, part) for part in (slice(0, 1), slice(-1, None)))
    early, late = (_level(val, part) for part in (slice(0, 1), slice(-1, None)))
    if min(first, last, early) <= 0.0 or late < BEHIND * last:
        return False
    return late / last > WIDENED * early / first


def _level(values: Floats, part: slice) -> float:
    """The middle of the first or of the last quarter of a curve."""
    return float(np.median(np.concatenate(np.array_split(values, 4)[part])))


def _indices(call: ast.Call, name: str) -> ast.expr | None:
    """Which examples a call leaves of a dataset."""
    if name.rpartition(".")[2] == "Subset":
        return argument(call, "indices", 1)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "select":
        return argument(call, "indices", 0)
    return None


def _different(module: Module, node: ast.expr) -> int | None:
    """How many different indices an expression stands for, where it says so."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _different(module, node.left), _different(module, node.right)
        return left if left is not None else right
    if isinstance(node, (ast.List, ast.Tuple)):
        known = literal(node)
        whole = [i for i in known if isinstance(i, int)] if isinstance(known, (list, tuple)) else []
        return len(set(whole)) if whole and len(whole) == len(node.elts) else None
    if not isinstance(node, ast.Call) or not node.args:
        return None
    name = module.qualified(node.func) or ""
    if name in WRAPPERS:
        return _different(module, node.args[0])
    ends = [e for e in map(literal, node.args) if isinstance(e, int)]
    if name not in RANGES or not len(ends) == len(node.args) <= 2:
        return None
    return len(range(*ends)) or None


def _is_training(module: Module, call: ast.Call) -> bool:
    """Tell whether what is cut down is named as training data, before or after."""
    statement = module.statement_of(call)
    target = ""
    if isinstance(statement, ast.Assign):
        target = ast.unparse(statement.targets[0])
    named = [n for n in module.enclosing(call) if isinstance(n, ast.keyword)]
    words = " ".join([target, ast.unparse(call), *(k.arg or "" for k in named)]).lower()
    return "train" in words and not any(word in words for word in ("val", "test", "probe"))


def _finding(module: Module, call: ast.Call, count: int, train: Series, val: Series) -> Finding:
    behind = f"{val.origin.name} ends at {val.last:.4g}, training at {train.last:.4g}"
    return Finding(
        claim=f"Training sees {count} different examples, and validation stays behind",
        strength=Strength.STRONG,
        evidence=(
            module.cite(call, f"`{ast.unparse(call)}` leaves {count} different examples"),
            cite(val, behind, -1, val=val.last, train=train.last),
        ),
        suggests={CAUSE: Strength.STRONG},
        is_symptom=True,
        onset=float(val.steps[0]),
        location=module.location(call),
    )


def _run(code: str, ends: float = 0.3) -> Run:
    series = {
        "loss/train": decay(40, 2.0, 0.1, noise=0.0),
        "loss/val": decay(40, 2.0, ends, noise=0.0),
    }
    text = f"import torch\nfrom torch.utils.data import DataLoader, Subset\n\n{code}\n"
    return make_run(series, sources={"train.py": text})


FIRES = {
    "a try-out left in": _run("train_loader = DataLoader(Subset(train_set, range(32)))"),
    "repeated to fill an epoch": _run("train_set = Subset(data, list(range(24)) * 25)"),
    "a selection": _run("train_set = data['train'].select(range(50))"),
}

SILENT = {
    "a subset of many": _run("train_set = Subset(data, range(50000))"),
    "near miss: a handful, and validation keeps up": _run(
        "train_set = Subset(data, range(32))", ends=0.1
    ),
    "near miss: a handful to look at": _run("preview = Subset(val_set, range(32))"),
    "near miss: indices of a split": _run("train_set = Subset(data, indices[:split])"),
}
