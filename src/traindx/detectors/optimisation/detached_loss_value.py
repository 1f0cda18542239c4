"""The value that backward is called on was cut from the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import training_loops
from traindx.source.module import Module, key_of
from traindx.source.project import Project

CUTS = {"item": ".item()", "detach": ".detach()", "numpy": ".numpy()", "tolist": ".tolist()"}
NEW_TENSORS = {"torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor",
               "torch.autograd.Variable", "torch.from_numpy"}  # fmt: skip


@detector(needs=("source",), suggests=("detached-loss",))
def check(run: Run) -> Iterator[Finding]:
    """Backward is called on a value that was cut from the computation.

    ## What it detects
    The loss that `backward` is called on, followed back to the statement that made it: a call of
    `.item()`, `.detach()`, `.data`, `.numpy()`, or a new tensor built from an old value. As a
    remark, a loss that is told to require gradients.

    ## Why it matters
    The new value knows nothing of the model. Backward fails, or, with `requires_grad=True` set to
    silence the error, runs and reaches no parameter: nothing is learnt.

    ## What to do
    Call `backward` on the loss itself; use `.item()` only for what is printed.

    ## When it is wrong
    Only the last assignment before `backward` in the same function is looked at, and only where it
    is sure to run; a detached part of a larger sum is fine and is left alone.
    """
    project = project_of(run)
    for loop in training_loops(project):
        for backward in loop.does(Do.BACKWARD):
            cut = _cut(project, backward)
            if cut is None:
                yield from _forced(backward)
                continue
            node, how = cut
            line = getattr(node, "lineno", backward.line)
            yield Finding(
                claim=f"The loss is cut from the graph by {how} before backward",
                strength=Strength.STRONG,
                evidence=(
                    cite_source(backward.module.path, line, f"{how} makes a value without history"),
                    cite_source(
                        backward.module.path, backward.line, "backward is called on it here"
                    ),
                ),
                shows="detached-loss",
                is_symptom=True,
                location=_location(backward, node),
            )
            break


def _forced(backward: Act) -> Iterator[Finding]:
    """`loss.requires_grad = True`: a loss that has a history needs no such line."""
    key = None if backward.subject is None else key_of(backward.subject)
    scope: ast.AST = backward.function or backward.module.tree
    for node in ast.walk(scope):
        if not isinstance(node, (ast.Assign, ast.Expr)) or node.lineno > backward.line:
            continue
        text = ast.unparse(node).replace(" ", "")
        if text in (f"{key}.requires_grad=True", f"{key}.requires_grad_(True)") or (
            text == f"{key}.requires_grad_()"
        ):
            yield Finding(
                claim=f"`{key}` is told to require gradients before backward",
                strength=Strength.MODERATE,
                evidence=(
                    backward.module.cite(
                        node, "needless for a loss of the model; it hides one without a history"
                    ),
                ),
                suggests={"detached-loss": Strength.MODERATE},
                location=backward.module.location(node),
            )
            return


def _location(backward: Act, node: ast.AST) -> Location:
    line = getattr(node, "lineno", backward.line)
    return Location(backward.module.path, line, getattr(node, "end_lineno", None) or line)


def _cut(project: Project, backward: Act) -> tuple[ast.AST, str] | None:
    subject = backward.subject
    if subject is None:
        return None
    direct = _cutting(backward.module, subject)
    if direct is not None:
        return subject, direct
    key = key_of(subject)
    scope: ast.AST = backward.function or backward.module.tree
    if key is None or key.startswith("self."):
        return None
    made = [v for v in project.bindings(scope).get(key, []) if v.lineno <= backward.line]
    if not made:
        return None
    latest = max(made, key=lambda v: v.lineno)
    how = _cutting(backward.module, latest)
    is_it = how is not None and _reaches(backward, latest, key)
    return (latest, how) if how is not None and is_it else None


def _reaches(backward: Act, value: ast.expr, key: str) -> bool:
    """Tell whether a value under a name is surely what `backward` finds there.

    It may stand in another branch, be added to on the way, or be hidden by the name of a loop.
    """
    module = backward.module
    if not set(_branches(module, value)) <= set(_branches(module, backward.node)):
        return False
    around = [n for n in module.enclosing(backward.node) if isinstance(n, ast.For)]
    if any(isinstance(n, ast.Name) and n.id == key for a in around for n in ast.walk(a.target)):
        return False
    scope: ast.AST = backward.function or module.tree
    later = (n for n in ast.walk(scope) if value.lineno < getattr(n, "lineno", 0) <= backward.line)
    return not any(_adds_to(n, key) for n in later)


def _branches(module: Module, node: ast.AST) -> Iterator[str]:
    """Yield the conditions that a node stands under, alike for the same branch of the same test."""
    below = node
    for above in module.enclosing(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(above, ast.If) and below is not above.test:
            yield f"{below in above.body} {ast.dump(above.test)}"
        if isinstance(above, ast.ExceptHandler):
            yield f"except {above.lineno}"
        below = above


def _adds_to(node: ast.AST, key: str) -> bool:
    """`loss += …`, `loss.add_(…)`."""
    if isinstance(node, ast.AugAssign):
        return key_of(node.target) == key
    func = node.func if isinstance(node, ast.Call) else None
    is_in_place = isinstance(func, ast.Attribute) and func.attr.endswith("_")
    is_in_place = is_in_place and getattr(func, "attr", "") != "requires_grad_"
    return is_in_place and isinstance(func, ast.Attribute) and key_of(func.value) == key


def _cutting(module: Module, node: ast.expr) -> str | None:
    """How an expression cuts the graph, if the whole of it does."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return ".data"
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in CUTS and not node.args:
        return CUTS[node.func.attr]
    if isinstance(node.func, ast.Attribute) and node.func.attr in {"requires_grad_", "to", "cuda"}:
        return _cutting(module, node.func.value)
    name = module.qualified(node.func) or ""
    builds_from_value = node.args and not isinstance(node.args[0], ast.Constant)
    if name in NEW_TENSORS and builds_from_value and not _is_list(node.args[0]):
        return f"{name}(…)"
    return None


def _is_list(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.Tuple))


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
{more}
    optimizer.step()
"""


def _loop(*more: str) -> Run:
    body = "\n".join(f"    {line}" for line in more)
    return make_run(sources={"train.py": _LOOP.format(more=body)})


FIRES = {
    "told to require gradients": _loop("loss.requires_grad = True", "loss.backward()"),
    "a new tensor to silence the error": _loop(
        "loss = torch.tensor(loss.item(), requires_grad=True)", "loss.backward()"
    ),
    "detach before backward": _loop("loss.detach().requires_grad_().backward()"),
    "data": _loop("value = loss.data", "value.backward()"),
    "in the branch that learns": _loop(
        "if learns:", "    value = loss.detach()", "if learns:", "    value.backward()"
    ),
}

SILENT = {
    "a right loop": _loop("loss.backward()", "print(loss.item())"),
    "near miss: a detached part of the sum": _loop("loss = loss + aux.detach()", "loss.backward()"),
    "near miss: detached in the branch that does not learn": _loop(
        'if phase == "val":',
        "    loss = loss.detach()",
        'if phase == "train":',
        "    loss.backward()",
    ),
    "near miss: the other branch of the same test": _loop(
        "if learns:",
        "    loss = criterion(model(data), target)",
        "else:",
        "    loss = criterion(model(data), target).detach()",
        "if learns:",
        "    loss.backward()",
    ),
    "near miss: a start that is added to": _loop(
        "total = torch.tensor(offset)", "total += loss", "total.backward()"
    ),
    "near miss: the name of a loop": _loop(
        "value = loss.item()", "for value in losses:", "    value.backward()"
    ),
    "near miss: the printed value is detached": _loop("loss.backward()", "running = loss.detach()"),
}
