"""Inputs and targets are the same slice of the data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, key_of

TARGETS = frozenset({"y", "yb", "y_batch", "target", "targets", "label", "labels", "tgt", "trg"})
COPIES = ("copy", "clone", "autoencod", "reconstruct", "denois")


@detector(needs=("source",), suggests=("misaligned-labels",))
def check(run: Run) -> Iterator[Finding]:
    """A target is cut out of the data by the very expression that cuts out the input.

    ## What it detects
    Two statements of one block that bind an input and a target, by their names, to the same slice
    of the same data: `x = data[i : i + n]` and `y = data[i : i + n]`.

    ## Why it matters
    A model of sequences is to predict what comes next. Here the answer is the input itself: the
    loss falls to nothing, or, if it is so in validation only, rises without end.

    ## What to do
    Move the target by one: `y = data[i + 1 : i + 1 + n]`.

    ## When it is wrong
    An autoencoder's target is its input; code that says so, or that gives the input itself to the
    loss, is left alone.
    """
    project = project_of(run)
    for module in project.training_modules:
        for node in module.nodes(ast.Assign):
            name = _name(node)
            if name.rsplit(".", 1)[-1].lower() not in TARGETS or not _cuts(node.value):
                continue
            twin = _twin(module, node)
            if twin is not None and not _is_copy(module, node):
                yield _finding(module, twin, node)


def _name(node: ast.Assign) -> str:
    return (key_of(node.targets[0]) or "") if len(node.targets) == 1 else ""


def _cuts(value: ast.expr) -> bool:
    """Tell whether a value is cut out of a sequence between two bounds that move."""
    slices = (n for n in ast.walk(value) if isinstance(n, ast.Slice) and n.lower and n.upper)
    return any(isinstance(n, ast.Name) for s in slices for n in ast.walk(s))


def _twin(module: Module, node: ast.Assign) -> ast.Assign | None:
    """The statement just before or after that binds another name to the same."""
    above = module.parents.get(node)
    for body in (getattr(above, "body", []), getattr(above, "orelse", [])):
        if not isinstance(body, list) or node not in body:
            continue
        place = body.index(node)
        for other in body[max(place - 2, 0) : place + 3]:
            is_other = isinstance(other, ast.Assign) and _name(other) not in ("", _name(node))
            if is_other and ast.dump(other.value) == ast.dump(node.value):
                return other if isinstance(other, ast.Assign) else None
    return None


def _is_copy(module: Module, node: ast.stmt) -> bool:
    function, cls = module.function_of(node), module.class_of(node)
    names = [x.name.lower() for x in (function, cls) if x is not None] + [module.path.lower()]
    return any(word in name for name in names for word in COPIES)


def _finding(module: Module, given: ast.Assign, wanted: ast.Assign) -> Finding:
    return Finding(
        claim=f"`{_name(wanted)}` is the same slice as `{_name(given)}`: it is not moved by one",
        strength=Strength.STRONG,
        evidence=(
            module.cite(given, f"`{ast.unparse(given)}`"),
            module.cite(wanted, f"`{ast.unparse(wanted)}`"),
        ),
        shows="misaligned-labels",
        is_symptom=True,
        location=module.location(wanted),
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(0, 1000, 24):
    x = data[:, i : i + 24]
    {name} = {value}
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), {name}.flatten())
    loss.backward()
    optimizer.step()
"""


def _program(value: str, name: str = "y") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(value=value, name=name)})


FIRES = {"the same slice": _program("data[:, i : i + 24]")}

SILENT = {
    "moved by one": _program("data[:, i + 1 : i + 25]"),
    "near miss: of other data": _program("answers[:, i : i + 24]"),
    "near miss: a second view": _program("data[:, i : i + 24]", "x2"),
}
