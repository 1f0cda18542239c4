"""A tensor's move to the device is computed and thrown away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.devices import FACTORIES
from traindx.source.module import Module
from traindx.source.patches import diff, replacing
from traindx.source.project import Project


@detector(needs=("source",), suggests=("device-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """A tensor is moved to a device and the result is dropped.

    ## What it detects
    `x.to(device)` or `x.cuda()` as a statement of its own, where `x` is a tensor: unpacked from a
    loader with others, or made by a function of torch.

    ## Why it matters
    A module moves in place, a tensor does not: the call returns the moved tensor. `x` stays where
    it was, and the next operation with the model fails.

    ## What to do
    Keep the result: `x = x.to(device)`.

    ## When it is wrong
    Batches of their own class (tokenizer output, graphs) may move in place; a name that is the
    whole batch is left alone.
    """
    project = project_of(run)
    for module in project.training_modules:
        for node in module.nodes(ast.Expr):
            call = node.value
            func = call.func if isinstance(call, ast.Call) else None
            if not isinstance(func, ast.Attribute) or func.attr not in ("to", "cuda"):
                continue
            if not isinstance(func.value, ast.Name) or not _is_tensor(project, module, func.value):
                continue
            name, text = func.value.id, module.source(call)
            yield Finding(
                claim=f"`{text}` moves a tensor and drops the result",
                strength=Strength.STRONG,
                evidence=(module.cite(node, f"{name} itself stays where it is"),),
                shows="device-mismatch",
                is_symptom=True,
                location=module.location(node),
                patch=diff(module, replacing(node, f"{name} = {text}")),
            )


def _is_tensor(project: Project, module: Module, name: ast.Name) -> bool:
    for above in module.enclosing(name):
        if isinstance(above, ast.For):
            unpacked = _unpacked(above.target)
            if name.id in unpacked and "loader" in ast.unparse(above.iter).lower():
                return not _is_rebound(above, name.id)
    at: ast.AST = module.function_of(name) or module.tree
    values = project.lookup(module, at, name.id)
    return bool(values) and all(_is_made_by_torch(module, v) for v in values)


def _unpacked(target: ast.expr) -> list[str]:
    """The names of a batch that is taken apart; the whole batch may be of any class."""
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        inner = target.elts[1]
        if isinstance(inner, ast.Tuple):
            target = inner
        elif isinstance(target.elts[0], ast.Name) and target.elts[0].id in COUNTERS:
            return []
    if not isinstance(target, ast.Tuple):
        return []
    return [e.id for e in target.elts if isinstance(e, ast.Name)]


COUNTERS = frozenset({"i", "step", "batch_idx", "idx", "_", "it", "n", "iteration", "batch_index"})


def _is_rebound(loop: ast.For, name: str) -> bool:
    assigns = (n for n in ast.walk(loop) if isinstance(n, ast.Assign))
    return any(isinstance(t, ast.Name) and t.id == name for n in assigns for t in n.targets)


def _is_made_by_torch(module: Module, value: ast.expr) -> bool:
    name = (module.qualified(value.func) or "") if isinstance(value, ast.Call) else ""
    return name.startswith("torch.") and name.removeprefix("torch.") in FACTORIES


_LOOP = """
import torch

for {target} in train_loader:
    {move}
    loss = criterion(model(data), target)
    loss.backward()
"""


def _loop(move: str, target: str = "data, target") -> Run:
    return make_run(sources={"train.py": _LOOP.format(target=target, move=move)})


FIRES = {
    "a batch": _loop("data.to(device)"),
    "a batch, counted": _loop("target.cuda()", "i, (data, target)"),
    "a tensor": make_run(sources={"t.py": "import torch\nx = torch.zeros(3)\nx.to('cuda')\n"}),
}

SILENT = {
    "kept": _loop("data = data.to(device)"),
    "near miss: a module moves in place": _loop("model.to(device)"),
    "near miss: a batch of its own class": _loop("batch.to(device)", "batch"),
    "near miss: a counted batch of its own class": _loop("batch.to(device)", "i, batch"),
}
