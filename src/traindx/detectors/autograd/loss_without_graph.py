"""Backward was called on a loss that no graph leads to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Failure, Run, make_run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.errors import Culprit, Site, explain, make_failed_run, match_root, site_of
from traindx.source.module import Function, Module, key_of, literal
from traindx.source.patches import diff, replacing

MESSAGE = re.compile(
    r"element (\d+) of (?:tensors|variables|variables tuple) does not require grad"
    r"|does not require grad and does not have a grad_fn"
    r"|Inference tensors cannot be saved for backward|called backward on a tensor .{0,40}no_grad"
)
CUTS = {"item", "detach", "numpy", "tolist", "data"}
STEPS = {"argmax", "argmin", "round", "floor", "ceil", "sign", "topk", "eq", "ne", "gt", "lt",
         "long", "int", "bool", "multinomial", "bincount", "one_hot"}  # fmt: skip
NEW_TENSORS = {"tensor", "as_tensor", "from_numpy", "FloatTensor", "Tensor", "Variable"}
NO_GRAD = ("no_grad", "inference_mode")
FOLLOWED = 6
GUESSES = {
    "detached-loss": Strength.STRONG,
    "no-grad-training": Strength.MODERATE,
    "frozen-parameters": Strength.MODERATE,
    "non-differentiable-operation": Strength.MODERATE,
}


@detector(needs=("failure",), suggests=tuple(GUESSES))
def check(run: Run) -> Iterator[Finding]:
    """Backward is called on a value that depends on no parameter.

    ## What it detects
    "element 0 of tensors does not require grad and does not have a grad_fn". With the source, what
    cut the graph: `.item()`, `.detach()`, `torch.tensor(…)` around the loss, argmax or a
    comparison, `no_grad`, or a model whose parameters are all frozen.

    ## Why it matters
    Nothing can learn; and `loss.requires_grad_()`, an often-read advice, makes the error go away
    while still nothing learns.

    ## What to do
    Take out what cuts the graph between the model's output and the loss.

    ## When it is wrong
    Without the source the four reasons cannot be told apart, and are listed side by side.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure, _ = hit
    shows, culprit = _reason(run, failure)
    claim = "Backward is called on a value without a graph: no parameter can get a gradient"
    if culprit is not None:
        claim += f"; {culprit.says}"
    suggests = {} if shows else GUESSES
    yield explain(run, failure, claim, shows=shows, suggests=suggests, culprit=culprit)


def _reason(run: Run, failure: Failure) -> tuple[str | None, Culprit | None]:
    project = project_of(run)
    for site in _sites(run, failure, project):
        for cause, culprit in _cuts(project, site):
            return cause, culprit
    for module in project.modules:
        frozen = _all_frozen(module)
        if frozen is not None:
            return "frozen-parameters", frozen
    return None, None


def _sites(run: Run, failure: Failure, project: Project) -> list[Site]:
    """The statement that raised, or without a traceback every one that calls backward."""
    site = site_of(run, failure)
    if site is not None:
        return [site]
    return [
        Site(m, n)
        for m in project.modules
        for n in ast.walk(m.tree)
        if isinstance(n, ast.Expr) and ast.unparse(n).endswith(".backward()")
    ]


def _cuts(project: Project, site: Site) -> Iterator[tuple[str, Culprit]]:
    module = site.module
    context = _no_grad_around(module, site.node)
    if context is not None:
        yield "no-grad-training", context
    scope: Function | ast.Module = site.function or module.tree
    pending = [n for n in ast.walk(site.node) if isinstance(n, ast.Name)]
    seen: set[str] = set()
    for _ in range(FOLLOWED):
        names, pending = [n.id for n in pending if n.id not in seen], []
        seen.update(names)
        for statement in _bindings(scope, names, before=site.node.lineno):
            context = _no_grad_around(module, statement)
            if context is not None:
                yield "no-grad-training", context
            yield from _cuts_in(module, statement)
            pending += [n for n in ast.walk(statement.value) if isinstance(n, ast.Name)]
            yield from _called(project, module, statement)


def _called(
    project: Project, module: Module, statement: ast.Assign
) -> Iterator[tuple[str, Culprit]]:
    """What the project's own functions, decorated not to record, give to the loss."""
    for _, name in module.calls(statement.value):
        found = project.find_function(module, name) if name else None
        if found is not None and (context := _decorated(*found)) is not None:
            yield "no-grad-training", context


def _bindings(scope: ast.AST, names: list[str], before: int) -> list[ast.Assign]:
    nodes = (n for n in ast.walk(scope) if isinstance(n, ast.Assign) and n.lineno < before)
    found = [n for n in nodes if {k for t in n.targets for k in _keys(t)} & set(names)]
    return sorted(found, key=lambda n: -n.lineno)


def _keys(target: ast.expr) -> set[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return {k for k in map(key_of, parts) if k}


def _cuts_in(module: Module, node: ast.Assign) -> Iterator[tuple[str, Culprit]]:
    text = ast.unparse(node.value)
    if isinstance(node.value, ast.Compare):
        yield "non-differentiable-operation", Culprit(module, node, f"`{text}` has no gradient")
    for inner in ast.walk(node.value):
        name = inner.attr if isinstance(inner, ast.Attribute) else ""
        called = inner.func if isinstance(inner, ast.Call) else None
        maker = (module.qualified(called) or "") if called is not None else ""
        is_new = maker.startswith("torch.") and maker.rsplit(".", 1)[-1] in NEW_TENSORS
        if is_new and isinstance(inner, ast.Call) and inner.args and _is_computed(inner.args[0]):
            says = f"`{ast.unparse(inner)}` makes a new tensor that knows nothing of the model"
            patch = diff(module, replacing(inner, ast.unparse(inner.args[0])))
            yield "detached-loss", Culprit(module, node, says, patch)
        elif name in CUTS:
            says = f"`.{name}` in `{text}` cuts the graph"
            yield "detached-loss", Culprit(module, node, says, _without(module, node, name))
        elif name in STEPS:
            says = f"{name} in `{text}` has no gradient"
            yield "non-differentiable-operation", Culprit(module, node, says)


def _is_computed(value: ast.expr) -> bool:
    return literal(value) is None


def _without(module: Module, node: ast.Assign, name: str) -> str | None:
    """The statement without the one call that cuts the graph."""
    for call, _ in module.calls(node.value):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == name and name in ("item", "detach"):
            return diff(module, replacing(call, ast.unparse(func.value)))
    return None


def _no_grad_around(module: Module, node: ast.AST) -> Culprit | None:
    for above in module.enclosing(node):
        if isinstance(above, ast.With):
            text = " ".join(ast.unparse(i.context_expr) for i in above.items)
            if any(word in text for word in NO_GRAD) or "set_grad_enabled(False)" in text:
                return Culprit(module, above, f"the forward pass runs under `{text}`")
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _decorated(module, above)
    return None


def _decorated(module: Module, function: Function) -> Culprit | None:
    for mark in function.decorator_list:
        text = ast.unparse(mark)
        if any(word in text for word in NO_GRAD):
            return Culprit(module, mark, f"{function.name} is decorated with `@{text}`")
    return None


def _all_frozen(module: Module) -> Culprit | None:
    """The one place that turns gradients off, if nothing turns any on or adds a layer after."""
    if re.search(r"requires_grad_?\s*(?:=|\()\s*True|requires_grad_\(\)", module.text):
        return None
    for node in ast.walk(module.tree):
        text = ast.unparse(node) if isinstance(node, (ast.Assign, ast.Expr)) else ""
        if re.search(r"\.requires_grad = False$|\.requires_grad_\(False\)$", text):
            return Culprit(module, node, f"`{text}` turns the gradients of the model off")
    return None


_ERROR = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
_LOOP = """
import torch
for x, y in loader:
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


def _run(loss: str) -> Run:
    text = _LOOP.format(loss=loss)
    return make_failed_run(_ERROR, "loss.backward()", sources={"train.py": text})


FIRES = {
    "the message alone": make_failed_run(_ERROR, "loss.backward()"),
    "a new tensor": _run("torch.tensor(criterion(model(x), y))"),
    "argmax": _run("criterion(model(x).argmax(1).float(), y)"),
}

SILENT = {
    "near miss: a graph used twice": make_failed_run(
        "RuntimeError: Trying to backward through the graph a second time", "loss.backward()"
    ),
    "no error": make_run(sources={"train.py": _LOOP.format(loss="criterion(model(x), y)")}),
}
