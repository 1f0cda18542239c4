"""The parts of a batch, where a loop goes over them: `[t.to(device) for t in batch]`."""

from __future__ import annotations

import ast

from traindx.analysis.program.execution import examples, iteration, names
from traindx.analysis.program.execution.truth import is_none
from traindx.analysis.program.execution.values import (
    ClassValue,
    FunctionValue,
    Instance,
    Part,
    Result,
    Value,
)
from traindx.analysis.program.syntax import Function

PARTS_OF = frozenset({"torch.utils.data.Subset", "torch.utils.data.random_split"})
DEEPEST = 6  # subsets of subsets


def parts_of(batch: Value) -> list[Value] | None:
    """Return the parts of a batch of a loader; None where it may have any number of them."""
    if not isinstance(batch, Result) or batch.maker != "builtins.next" or not batch.args:
        return None
    loader = iteration.wrapped(batch.args[0])
    count = _count(loader) if examples.is_loader(loader) else None
    return None if count is None else [names.part(batch, i) for i in range(count)]


def _count(loader: Value) -> int | None:
    given = examples.settings_of(loader)
    collate = given.get("collate_fn")
    if collate is not None and is_none(collate) is not True:
        is_own = isinstance(collate, FunctionValue) and isinstance(collate.node, Function)
        return _returned(collate.node) if is_own else None  # type: ignore[attr-defined]
    return _of_example(given.get("dataset"), DEEPEST)


def _of_example(dataset: Value | None, depth: int) -> int | None:
    """How many parts an example of a dataset has."""
    dataset = dataset.of if isinstance(dataset, Part) else dataset  # one of a split
    if depth and isinstance(dataset, Result):
        if dataset.maker == "torch.utils.data.TensorDataset":
            is_spread = any(isinstance(a, Result) and a.maker == "operator.spread"
                            for a in dataset.args)  # fmt: skip
            return None if is_spread else len(dataset.args)
        inner = dataset.args[0] if dataset.args else None
        return _of_example(inner, depth - 1) if dataset.maker in PARTS_OF else None
    method = _method(dataset.cls) if isinstance(dataset, Instance) else None
    return None if method is None else _returned(method)


def _method(cls: ClassValue) -> Function | None:
    for home in cls.lineage():
        for node in home.node.body:
            if isinstance(node, Function) and node.name == "__getitem__":
                return node
    return None


def _returned(function: Function) -> int | None:
    """How many values a function returns, where each of its returns writes down a tuple."""
    found = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    widths = {len(v.elts) if isinstance(v, ast.Tuple) and not _is_open(v) else 0 for v in found}
    return widths.pop() or None if len(widths) == 1 else None


def _is_open(value: ast.Tuple) -> bool:
    return any(isinstance(part, ast.Starred) for part in value.elts)
