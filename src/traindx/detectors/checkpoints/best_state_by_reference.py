"""The best weights are kept by reference and train on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Module, key_of
from traindx.source.patches import diff, replacing

BEST = re.compile(r"best", re.IGNORECASE)


@detector(needs=("source",), suggests=("best-weights-overwritten",))
def check(run: Run) -> Iterator[Finding]:
    """The state of the best epoch is kept without a copy, and restored at the end.

    ## What it detects
    In a training loop, under a condition, `best… = model.state_dict()` or `best… = model` without
    a copy, where the name is used behind the loop: loaded into a model, saved or returned.

    ## Why it matters
    The dictionary holds the very tensors that the optimizer goes on changing. At the end it is the
    last model, and the best one is lost without any error.

    ## What to do
    `copy.deepcopy(model.state_dict())`, or save it to a file at once.

    ## When it is wrong
    Where the loop ends as soon as the state was kept there is nothing to overwrite it; such loops
    are left alone, and so are those that make a model in every turn (a search, folds) and a state
    that is written to a file within the loop.
    """
    for loop in training_loops(project_of(run)):
        if not loop.does(Do.STEP, Do.SCALER_STEP, Do.BACKWARD):
            continue
        for node, name in _kept(loop.module, loop):
            if not _is_used_behind(loop, name) or _is_left(loop.module, node):
                continue
            yield Finding(
                claim=f"`{name}` is no copy: it trains on, and is the last model at the end",
                strength=Strength.STRONG,
                evidence=(
                    loop.module.cite(node, "these are the model's own tensors, not a copy"),
                    loop.module.cite(loop.node, "and this loop goes on changing them"),
                ),
                shows="best-weights-overwritten",
                location=loop.module.location(node),
                patch=_patch(loop.module, node),
            )
            break


def _kept(module: Module, loop: TrainingLoop) -> Iterator[tuple[ast.Assign, str]]:
    """The states, or models, that are kept under a condition in the loop, by their names."""
    models = {a.target for a in loop.does(Do.FORWARD)}
    for node in ast.walk(loop.node):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        call = node.value
        func = call.func if isinstance(call, ast.Call) and not call.args else None
        is_state = isinstance(func, ast.Attribute) and func.attr == "state_dict"
        name = key_of(node.targets[0]) or ""
        # up to the loop: the guard of a main program is no condition on the score
        around = [n for n in module.enclosing(node) if isinstance(n, ast.If) and _is_in(n, loop)]
        kept = key_of(func.value) if isinstance(func, ast.Attribute) else key_of(call)
        is_model = is_state or key_of(call) in models
        if is_model and around and BEST.search(name) and not _is_made_anew(module, node, kept):
            yield node, name


def _is_made_anew(module: Module, node: ast.Assign, model: str | None) -> bool:
    """Tell whether each turn of the loop around has a model of its own, as in a search or folds."""
    loops = (n for n in module.enclosing(node) if isinstance(n, (ast.For, ast.While)))
    inner = next(loops, None)
    bound = (n for n in ast.walk(inner) if isinstance(n, ast.Assign)) if inner is not None else ()
    return any(key_of(p) == model for n in bound for t in n.targets for p in ast.walk(t))


def _is_in(node: ast.AST, loop: TrainingLoop) -> bool:
    first, last = getattr(loop.node, "lineno", 0), getattr(loop.node, "end_lineno", 0)
    return bool(first <= getattr(node, "lineno", 0) <= last)


def _is_used_behind(loop: TrainingLoop, name: str) -> bool:
    """Tell whether the kept state is used after the loop, and not written to a file within it."""
    module = loop.module
    scope: ast.AST = module.function_of(loop.node) or module.tree
    if name.startswith("self."):
        scope = module.class_of(loop.node) or scope
    inside = {n for n in ast.walk(loop.node) if isinstance(n, ast.Call)}
    for node in ast.walk(scope):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and any(key_of(a) == name for a in node.args):
            last = (key_of(func) or "").rsplit(".", 1)[-1] if func is not None else ""
            if last == "save" and node in inside:
                return False
    uses = (n for n in ast.walk(scope) if isinstance(n, (ast.Name, ast.Attribute)))
    end = int(getattr(loop.node, "end_lineno", 0) or 0)
    is_other = name.startswith("self.")
    return any(
        key_of(n) == name
        and isinstance(n.ctx, ast.Load)
        and (
            n.lineno > end
            or (is_other and module.function_of(n) is not module.function_of(loop.node))
        )
        for n in uses
    )


def _is_left(module: Module, node: ast.Assign) -> bool:
    """Tell whether the loop ends with the block in which the state is kept."""
    above = module.parents.get(node)
    body = getattr(above, "body", [])
    return any(isinstance(n, (ast.Break, ast.Return)) for n in body)


def _patch(module: Module, node: ast.Assign) -> str | None:
    if module.aliases.get("copy") != "copy" or not isinstance(node.value, ast.Call):
        return None
    return diff(module, replacing(node.value, f"copy.deepcopy({module.source(node.value)})"))


_LOOP = """
import copy
import torch

def train(model, loader, validate):
    optimizer = torch.optim.Adam(model.parameters())
    best, best_state = 0.0, None
    for epoch in range(9):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        score = validate(model)
        if score > best:
            best = score
            {keep}
    {end}
    return model
"""


def _loop(keep: str, end: str = "model.load_state_dict(best_state)") -> Run:
    return make_run(sources={"train.py": _LOOP.format(keep=keep, end=end)})


FIRES = {
    "the model itself": _loop("best_state = model", "model = best_state"),
    "restored at the end": _loop("best_state = model.state_dict()"),
    "saved at the end": _loop("best_state = model.state_dict()", 'torch.save(best_state, "b.pt")'),
}

_SEARCH = """
import torch

best, best_state = 0.0, None
for rate in (0.1, 0.01):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    if validate(model) > best:
        best_state = model.state_dict()
torch.save(best_state, "best.pt")
"""

SILENT = {
    "near miss: a model for every turn": make_run(sources={"search.py": _SEARCH}),
    "a copy": _loop("best_state = copy.deepcopy(model.state_dict())"),
    "near miss: copied tensor by tensor": _loop(
        "best_state = {k: v.clone() for k, v in model.state_dict().items()}"
    ),
    "near miss: written at once": _loop(
        'best_state = model.state_dict(); torch.save(best_state, "b.pt")'
    ),
    "near miss: never used behind the loop": _loop("best_state = model.state_dict()", "pass"),
}
