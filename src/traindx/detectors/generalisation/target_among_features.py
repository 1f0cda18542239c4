"""The target is part of the features."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.project import Project

PAIRS = frozenset({"train_test_split", "TensorDataset"})  # features first, targets second
STACKS = frozenset({"hstack", "column_stack", "concatenate", "cat", "concat", "append"})
SAME = frozenset(
    {"reshape", "view", "unsqueeze", "to_numpy", "values", "astype", "float", "to", "copy",
     "to_frame", "tensor", "as_tensor", "from_numpy", "array", "asarray", "FloatTensor", "Tensor"}
)  # fmt: skip
ARRAYS = frozenset(
    {"values", "to_numpy", "tensor", "as_tensor", "from_numpy", "array", "asarray", "FloatTensor"}
)
TAKES_OUT = ("drop", "pop")
PICKS = (ast.Slice, ast.List, ast.Name, ast.Attribute)
TAKES_COLUMNS = frozenset({"delete", "drop", "index_select", "hsplit", "narrow", "take"})


@dataclass(frozen=True, eq=False)
class _Pair:
    """Features and targets that one call takes side by side, row by row."""

    call: ast.Call
    features: ast.expr
    targets: ast.expr


@detector(needs=("source",), suggests=("data-leakage",))
def check(run: Run) -> Iterator[Finding]:
    """The features that a model is given hold the values that it has to predict.

    ## What it detects
    Features and targets that `train_test_split` or `TensorDataset` takes side by side, where the
    features are a whole table of which the targets are a column that was never dropped, or were
    joined with the targets; and a column of features that is overwritten with the targets after the
    split.

    ## Why it matters
    The model copies its answer. The result is perfect, or, where only one of the splits has it,
    absurd; on new data neither holds.

    ## What to do
    `X = table.drop(columns="price")`, and let nothing that is made from the target into it.

    ## When it is wrong
    Forecasts use earlier values of what they predict: shifted columns and windows are other values,
    and left alone. So are features from which columns are taken after the split.
    """
    project = project_of(run)
    for module in project.training_modules:
        for pair in _pairs(module):
            found = _whole_table(project, module, pair) or _joined(project, module, pair)
            if found is not None and _is_cut_later(module, pair):
                continue
            found = found or _overwritten(module, pair)
            if found is not None:
                node, says = found
                yield _finding(module, node, says, pair)
                return


def _finding(module: Module, node: ast.AST, says: str, pair: _Pair) -> Finding:
    return Finding(
        claim=f"The features hold the target: {says}",
        strength=Strength.STRONG,
        evidence=(
            module.cite(node, says),
            module.cite(pair.call, "features and targets side by side"),
        ),
        shows="data-leakage",
        is_symptom=True,
        location=module.location(module.statement_of(node) or node),
    )


def _pairs(module: Module) -> Iterator[_Pair]:
    for call, name in module.calls():
        plain = [a for a in call.args if not isinstance(a, ast.Starred)]
        if name.rsplit(".", 1)[-1] in PAIRS and len(plain) == len(call.args) == 2:
            yield _Pair(call, plain[0], plain[1])


def _bare(node: ast.expr) -> ast.expr:
    """What a value is, without changes of its type and shape."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in SAME:
                return node
            is_function = bool(node.args) and key_of(node.func.value) in ("torch", "np", "numpy")
            node = node.args[0] if is_function else node.func.value
        elif isinstance(node, ast.Attribute) and node.attr in SAME:
            node = node.value
        else:
            return node


def _resolved(project: Project, module: Module, at: ast.AST, node: ast.expr) -> ast.expr:
    """What a name was bound to, where that is one thing only."""
    bare = _bare(node)
    while isinstance(bare, ast.Name):
        bound = project.lookup(module, at, bare.id)
        if len(bound) != 1 or bound[0] is bare:
            return bare
        inner = _bare(bound[0])
        if not isinstance(inner, (ast.Name, ast.Subscript)):
            return bare
        bare = inner
    return bare


def _whole_table(project: Project, module: Module, pair: _Pair) -> tuple[ast.AST, str] | None:
    column = _resolved(project, module, pair.call, pair.targets)
    table = _resolved(project, module, pair.call, pair.features)
    name = literal(column.slice) if isinstance(column, ast.Subscript) else None
    if not isinstance(column, ast.Subscript) or not isinstance(name, str):
        return None
    if not isinstance(table, ast.Name) or key_of(column.value) != table.id:
        return None
    if not _is_array(project, module, pair.call, pair.features):
        return None  # a table that is split as a whole may have its columns picked later
    scope: ast.AST = module.function_of(pair.call) or module.tree
    if len(project.lookup(module, pair.call, table.id)) > 1 or _is_taken_out(scope, table.id):
        return None
    return column, f"`{ast.unparse(column)}` is predicted from all of `{table.id}`"


def _is_array(project: Project, module: Module, at: ast.AST, node: ast.expr) -> bool:
    """Tell whether a table, or what its name was bound to, is made into plain numbers."""
    name = _bare(node)
    bound = project.lookup(module, at, name.id) if isinstance(name, ast.Name) else []
    attributes = (n for v in (node, *bound) for n in ast.walk(v) if isinstance(n, ast.Attribute))
    return any(n.attr in ARRAYS for n in attributes)


def _is_taken_out(scope: ast.AST, table: str) -> bool:
    calls = (n.func for n in ast.walk(scope) if isinstance(n, ast.Call))
    owners = (f for f in calls if isinstance(f, ast.Attribute) and f.attr in TAKES_OUT)
    deleted = (n for n in ast.walk(scope) if isinstance(n, ast.Delete))
    is_deleted = any(key_of(t) == table for n in deleted for t in n.targets)
    return is_deleted or any(key_of(f.value) == table for f in owners)


def _is_cut_later(module: Module, pair: _Pair) -> bool:
    """Tell whether columns are picked or left out after features and targets were set side by side.

    That may be in a loop over batches, under any name; the targets have no columns to pick.
    """
    taken = (n for n in module.nodes(ast.Subscript) if n.lineno > pair.call.lineno)
    if any(isinstance(n.ctx, ast.Load) and _is_of_columns(n.slice) for n in taken):
        return True
    later = (name for call, name in module.calls() if call.lineno > pair.call.lineno)
    return any(name.rsplit(".", 1)[-1] in TAKES_COLUMNS for name in later)


def _is_of_columns(index: ast.expr) -> bool:
    """Tell whether an index picks several columns: `[:, :-1]`, `[:, columns]`, `[["a", "b"]]`."""
    if not isinstance(index, ast.Tuple):
        return isinstance(index, ast.List)
    first, last = index.elts[0], index.elts[-1]
    is_all_rows = ast.unparse(first) in (":", "...")
    return is_all_rows and isinstance(last, PICKS) and ast.unparse(last) != ":"


def _joined(project: Project, module: Module, pair: _Pair) -> tuple[ast.AST, str] | None:
    """The features are a join, along their columns, of which the targets are a part."""
    target, features = _bare(pair.targets), _bare(pair.features)
    if not isinstance(target, ast.Name) or not isinstance(features, ast.Name):
        return None
    for value in project.lookup(module, pair.call, features.id):
        if not isinstance(value, ast.Call) or value.lineno > pair.call.lineno:
            continue
        last = (key_of(value.func) or "").rsplit(".", 1)[-1]
        axis = argument(value, "axis") or argument(value, "dim")
        is_wide = last in ("hstack", "column_stack") or literal(axis) in (1, -1)
        parts = value.args[0].elts if value.args and isinstance(value.args[0], _SEVERAL) else []
        names = [inner.id for p in parts if isinstance(inner := _column(p), ast.Name)]
        if last in STACKS and is_wide and target.id in names and len(parts) > 1:
            return value, f"`{ast.unparse(value)}` joins the targets with the features"
    return None


_SEVERAL = (ast.List, ast.Tuple)


def _column(node: ast.expr) -> ast.expr:
    """A part of a join, without a new dimension such as `y[:, None]`."""
    bare = _bare(node)
    is_new_axis = isinstance(bare, ast.Subscript) and "None" in ast.unparse(bare.slice)
    return _bare(bare.value) if is_new_axis and isinstance(bare, ast.Subscript) else bare


def _overwritten(module: Module, pair: _Pair) -> tuple[ast.AST, str] | None:
    """A part of the split features gets the values of the split targets."""
    statement = module.statement_of(pair.call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Tuple) or len(target.elts) != 4:
        return None
    features = {key_of(e) for e in target.elts[:2]} - {None, "_"}
    targets = {key_of(e) for e in target.elts[2:]} - {None, "_"}
    scope: ast.AST = module.function_of(pair.call) or module.tree
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign) or node.lineno <= pair.call.lineno:
            continue
        written = node.targets[0]
        given = _column(node.value)
        is_feature = isinstance(written, ast.Subscript) and key_of(written) in features
        if is_feature and isinstance(given, ast.Name) and given.id in targets:
            return node, f"`{ast.unparse(node)}` after the split"
    return None


_PROGRAM = """
import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split

table = pd.read_csv("houses.csv")
{made}
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2)
{after}
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X_train, y_train))
"""


def _program(made: str, after: str = "pass") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(made=made, after=after)})


_APART = 'y = table["price"].values\nX = table.drop(columns="price").values'

FIRES = {
    "the whole table": _program('y = table["price"].values\nX = table.values'),
    "joined": _program("X = np.column_stack([a, b])\ny = c\nX = np.hstack([X, y.reshape(-1, 1)])"),
    "overwritten after the split": _program(_APART, "X_test[:, 0] = y_test"),
}

SILENT = {
    "dropped": _program(_APART),
    "near miss: taken out of the table": _program(
        'y = table.pop("price").values\nX = table.values'
    ),
    "near miss: the last column is left out after the split": _program(
        'y = table["price"].values\nX = table.values', "X_train = X_train[:, :-1]"
    ),
    "near miss: deleted after the split": _program(
        'y = table["price"].values\nX = table.values', "X_train = np.delete(X_train, 3, axis=1)"
    ),
    "near miss: left out in the loop": _program(
        'y = table["price"].values\nX = table.values',
        "for x, y in batches:\n    model(x[:, columns])",
    ),
    "near miss: deleted": _program('y = table["price"]\ndel table["price"]\nX = table.values'),
    "near miss: earlier values": _program('y = table["price"].shift(-1)\nX = table.values'),
    "near miss: a table that is split as a whole": _program('y = table["price"]\nX = table'),
    "near miss: some columns": _program('y = table["price"]\nX = table[["area", "rooms"]]'),
    "near miss: made data that depend on their class": _program(
        "y = np.arange(90) % 3\nX = np.random.randn(90, 4)\nX[:, 0] = y"
    ),
    "near miss: a mask of the targets": _program(_APART, "X_test[y_test > 5] = 0.0"),
}
