"""What cuts a value off from the graph that leads to the parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from traindx.analysis.errors.culprits import Culprit, FailingStatement
from traindx.analysis.program.patches import diff, replacing
from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Function, Module, key_of, literal

CUTS = {"item", "detach", "numpy", "tolist", "data"}
STEPS = {"argmax", "argmin", "round", "floor", "ceil", "sign", "topk", "eq", "ne", "gt", "lt",
         "long", "int", "bool", "multinomial", "bincount", "one_hot"}  # fmt: skip
NEW_TENSORS = {"tensor", "as_tensor", "from_numpy", "FloatTensor", "Tensor", "Variable"}
OFF_FOR_GOOD = ("set_grad_enabled(False)", "set_grad_enabled(mode=False)")
NO_GRAD = ("no_grad", "inference_mode")
FOLLOWED = 6


def cuts_before(project: Project, site: FailingStatement) -> Iterator[tuple[str, Culprit]]:
    """Yield what cuts the values of a statement off, nearest first, each with its cause."""
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
            yield from _cuts_in(module, statement, scope)
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
    # on the line itself too: some write a whole loop in one
    nodes = (n for n in _own_nodes(scope) if isinstance(n, ast.Assign) and n.lineno <= before)
    found = [n for n in nodes if {k for t in n.targets for k in _keys(t)} & set(names)]
    return sorted(found, key=lambda n: (-n.lineno, -n.col_offset))


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Everything in a scope but the bodies of its functions, whose names are their own."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _own_nodes(node)


def _keys(target: ast.expr) -> set[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return {k for k in map(key_of, parts) if k}


def _cuts_in(module: Module, node: ast.Assign, scope: ast.AST) -> Iterator[tuple[str, Culprit]]:
    text = ast.unparse(node.value)
    if isinstance(node.value, ast.Compare):
        yield "non-differentiable-operation", Culprit(module, node, f"`{text}` has no gradient")
    columns = _columns_made_tensors(module, node.value)
    for inner in ast.walk(node.value):
        name = inner.attr if isinstance(inner, ast.Attribute) and inner not in columns else ""
        called = inner.func if isinstance(inner, ast.Call) else None
        maker = (module.qualified(called) or "") if called is not None else ""
        is_new = maker.startswith("torch.") and maker.rsplit(".", 1)[-1] in NEW_TENSORS
        if is_new and isinstance(inner, ast.Call) and inner.args and _is_computed(inner.args[0]):
            says = f"`{ast.unparse(inner)}` makes a new tensor that knows nothing of the model"
            patch = diff(module, replacing(inner, ast.unparse(inner.args[0])))
            yield "detached-loss", Culprit(module, node, says, patch)
        elif name in CUTS and not _is_off_already(module, inner, scope):
            says = f"`.{name}` in `{text}` cuts the graph"
            yield "detached-loss", Culprit(module, node, says, _without(module, node, name))
        elif name in STEPS:
            says = f"{name} in `{text}` has no gradient"
            yield "non-differentiable-operation", Culprit(module, node, says)


def _is_off_already(module: Module, cut: ast.AST, scope: ast.AST) -> bool:
    """Tell whether what is cut off was computed without a graph: the cut changes nothing."""
    name = key_of(cut.value) if isinstance(cut, ast.Attribute) else None
    made = _bindings(scope, [name], before=cut.lineno) if name and hasattr(cut, "lineno") else []
    return bool(made) and _no_grad_around(module, made[0]) is not None


def _columns_made_tensors(module: Module, value: ast.expr) -> list[ast.expr]:
    """The columns of some data that are made tensors: `torch.tensor(digits.data)` cuts nothing."""
    return [
        call.args[0]
        for call, name in module.calls(value)
        if (name or "").rsplit(".", 1)[-1] in NEW_TENSORS
        and call.args
        and isinstance(call.args[0], ast.Attribute)
    ]


def _is_computed(value: ast.expr) -> bool:
    """Tell a value of the program from a constant and from a column of some data."""
    return literal(value) is None and not isinstance(value, ast.Attribute)


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


def switched_off(project: Project, ran: Iterable[Module]) -> Culprit | None:
    """The statement, in a file that ran, that turns gradients off, if nothing turns them on."""
    if any(re.search(r"enable_grad|set_grad_enabled\((?!False)", m.text) for m in project.modules):
        return None
    for module in ran:
        for node in module.nodes(ast.Expr):
            if isinstance(node.value, ast.Call) and ast.unparse(node).endswith(OFF_FOR_GOOD):
                says = f"`{ast.unparse(node)}` turns gradients off, and nothing turns them on"
                return Culprit(module, node, says)
    return None


def freezing(module: Module) -> Culprit | None:
    """The one place that turns gradients off, if nothing turns any on or adds a layer after."""
    if re.search(r"requires_grad_?\s*(?:=|\()\s*True|requires_grad_\(\)", module.text):
        return None
    for node in ast.walk(module.tree):
        text = ast.unparse(node) if isinstance(node, (ast.Assign, ast.Expr)) else ""
        if re.search(r"\.requires_grad = False$|\.requires_grad_\(False\)$", text):
            return Culprit(module, node, f"`{text}` turns the gradients of the model off")
    return None
