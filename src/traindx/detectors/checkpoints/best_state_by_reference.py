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
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

OF_NUMBERS = (Kind.SCHEDULER, Kind.SCALER)
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
    are left alone, and so are those that make or take a model in every turn (a search, folds), a
    state that is written to a file within the loop, what a sharded model gathers (FSDP), and the
    state of a scheduler or scaler, which is made of numbers.
    """
    project = project_of(run)
    for loop in training_loops(project):
        if not loop.does(Do.STEP, Do.SCALER_STEP, Do.BACKWARD):
            continue
        for node, name in _kept(project, loop):
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


def _kept(project: Project, loop: TrainingLoop) -> Iterator[tuple[ast.Assign, str]]:
    """The states, or models, that are kept under a condition in the loop, by their names."""
    module = loop.module
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
        owner = func.value if isinstance(func, ast.Attribute) else call
        kept = key_of(owner)
        if kept is None or not (is_state or kept in models) or not around:
            continue
        is_copied = is_state and _is_a_copy(project, module, node, owner)
        if BEST.search(name) and not is_copied and not _is_made_anew(loop, node, kept):
            yield node, name


def _is_a_copy(project: Project, module: Module, node: ast.Assign, owner: ast.expr) -> bool:
    """Tell whether the state shares nothing with what trains on, or is copied in the next line."""
    if "state_dict_type" in module.text:  # FSDP gathers the shards into new tensors
        return True
    at: ast.AST = module.function_of(node) or module.tree
    if value_of(project, module, at, owner).kind in OF_NUMBERS:
        return True
    name = key_of(node.targets[0])
    above = module.parents.get(node)
    later = (n for n in getattr(above, "body", []) if n.lineno > node.lineno)
    return any(isinstance(n, ast.Assign) and key_of(n.targets[0]) == name for n in later)


def _is_made_anew(loop: TrainingLoop, node: ast.Assign, model: str) -> bool:
    """Tell whether each turn of the loop around has a model of its own, as in a search or folds."""
    module = loop.module
    loops = (n for n in module.enclosing(node) if isinstance(n, (ast.For, ast.While)))
    inner = next(loops, None)
    if inner is None:
        return False
    trains = any(inner in a.loops for a in loop.does(Do.STEP, Do.SCALER_STEP, Do.BACKWARD))
    if isinstance(inner, ast.For) and trains and model in _bound(inner.target):
        return True
    called = {key_of(c.func) or "" for c in ast.walk(inner) if isinstance(c, ast.Call)}
    methods = [
        f
        for name, f in module.functions.items()
        if model.startswith("self.") and f"self.{name.rsplit('.', 1)[-1]}" in called
    ]
    return any(model in _assigned(place) for place in (inner, *methods))


def _assigned(place: ast.AST) -> set[str]:
    nodes = list(ast.walk(place))
    targets = [t for n in nodes if isinstance(n, ast.Assign) for t in n.targets]
    targets += [n.target for n in nodes if isinstance(n, (ast.AnnAssign, ast.NamedExpr))]
    return {name for t in targets for name in _bound(t)}


def _bound(target: ast.expr) -> set[str]:
    """Return the names that a target binds, one or a tuple of them."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return {name for part in target.elts for name in _bound(part)}
    key = key_of(target)
    return set() if key is None else {key}


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

_CANDIDATES = _SEARCH.replace("for rate in (0.1, 0.01):", "for rate, model in rated.items():")
_GATHERED = """with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
                best_state = model.state_dict()"""

SILENT = {
    "near miss: a model for every turn": make_run(sources={"search.py": _SEARCH}),
    "near miss: every turn takes another model": make_run(
        sources={"search.py": _CANDIDATES.replace("    model = Net()\n", "")}
    ),
    "near miss: gathered from shards": _loop(_GATHERED),
    "near miss: copied in the next line": _loop(
        "best_state = model.state_dict()\n            best_state = copy.deepcopy(best_state)"
    ),
    "near miss: a scheduler's state is numbers": _loop(
        "best_state = scheduler.state_dict()", "scheduler.load_state_dict(best_state)"
    ),
    "a copy": _loop("best_state = copy.deepcopy(model.state_dict())"),
    "near miss: copied tensor by tensor": _loop(
        "best_state = {k: v.clone() for k, v in model.state_dict().items()}"
    ),
    "near miss: written at once": _loop(
        'best_state = model.state_dict(); torch.save(best_state, "b.pt")'
    ),
    "near miss: never used behind the loop": _loop("best_state = model.state_dict()", "pass"),
}
