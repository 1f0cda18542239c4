"""A group of parameters that is put together and never handed to the optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Function, Module, literal
from traindx.source.values import Kind, kind_made_by


@detector(needs=("source",), suggests=("parameters-not-in-optimizer",))
def check(run: Run) -> Iterator[Finding]:
    """A parameter group is filled and then forgotten.

    ## What it detects
    In a function that makes an optimizer: a dictionary with a `params` entry that is filled, in a
    name that held other groups before it, and that nothing reads afterwards: no `append`, no call,
    no return.

    ## Why it matters
    The layers of that group are in no optimizer. They keep their first weights, the rest of the
    model learns around them, and no error says so.

    ## What to do
    Append the group to the list that the optimizer gets.

    ## When it is wrong
    Groups that are kept on an object or in a closure out of sight are not looked at.
    """
    for module in project_of(run).training_modules:
        for function in module.functions.values():
            if not _makes_an_optimizer(module, function):
                continue
            for name, left in _left_behind(function):
                yield Finding(
                    claim=f"The last parameter group in `{name}` is never given to the optimizer",
                    strength=Strength.STRONG,
                    evidence=(module.cite(left, f"`{name}` is filled here and not read any more"),),
                    shows="parameters-not-in-optimizer",
                    is_symptom=True,
                    location=module.location(left),
                )


def _makes_an_optimizer(module: Module, function: Function) -> bool:
    return any(kind_made_by(name) is Kind.OPTIMIZER for _, name in module.calls(function))


def _left_behind(function: Function) -> Iterator[tuple[str, ast.stmt]]:
    """The last group of each name that holds several in turn, where it is never read."""
    groups: dict[str, list[ast.Assign]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            for target in node.targets[:1]:
                if isinstance(target, ast.Name):
                    groups.setdefault(target.id, []).append(node)
    for name, made in groups.items():
        if len(made) < 2 or not all(n in function.body for n in made):
            continue
        made.sort(key=lambda n: n.lineno)
        ends = [n.lineno for n in made[1:]] + [10**9]
        read = [_is_read(function, name, n.lineno, end) for n, end in zip(made, ends, strict=True)]
        is_filled = all(_is_group(function, name, n, e) for n, e in zip(made, ends, strict=True))
        if is_filled and all(read[:-1]) and not read[-1]:
            yield name, made[-1]


def _is_group(function: Function, name: str, made: ast.Assign, end: int) -> bool:
    """Tell whether a dictionary gets an entry `params`, at once or by a later assignment."""
    keys = made.value.keys if isinstance(made.value, ast.Dict) else []
    if any(literal(k) == "params" for k in keys):
        return True
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and made.lineno < node.lineno < end:
            is_own = isinstance(node.value, ast.Name) and node.value.id == name
            if is_own and literal(node.slice) == "params":
                return True
    return False


def _is_read(function: Function, name: str, start: int, end: int) -> bool:
    """Tell whether the dictionary itself is used after it was made, not only its entries."""
    entries = {n.value for n in ast.walk(function) if isinstance(n, ast.Subscript)}
    names = (n for n in ast.walk(function) if isinstance(n, ast.Name) and n not in entries)
    loads = (n for n in names if n.id == name and isinstance(n.ctx, ast.Load))
    return any(start < n.lineno < end for n in loads)


_SETUP = """
import torch

def make_optimizer(model):
    groups = []
    group = {{"params": [], "lr": 1e-5}}
    for name, p in model.named_parameters():
        if "encoder" in name:
            group["params"].append(p)
    groups.append(group)

    group = {{"params": [], "lr": 1e-2}}
    for name, p in model.named_parameters():
        if "head" in name:
            group["params"].append(p)
    {last}
    return torch.optim.AdamW(groups)
"""


def _setup(last: str) -> Run:
    return make_run(sources={"train.py": _SETUP.format(last=last)})


FIRES = {"the second group": _setup("pass")}

SILENT = {
    "both groups": _setup("groups.append(group)"),
    "near miss: added to the list another way": _setup("groups += [group]"),
    "near miss: given on its own": _setup("return torch.optim.AdamW([*groups, group])"),
}
