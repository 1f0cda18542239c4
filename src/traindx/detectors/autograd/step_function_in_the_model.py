"""A model passes its own features through a step function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Function, Module, key_of
from traindx.source.project import Project

FLAT = frozenset({"sign", "round", "floor", "ceil", "heaviside", "trunc", "sgn"})
# estimators let the gradient through by hand
THROUGH = ("detach", "autograd.Function", ".apply(", "register_hook", "no_grad", "gumbel")
# of positions, durations and indices: these are no features
INDICES = frozenset({"long", "int", "to", "type", "short"})
DEEP = 4


@detector(needs=("source",), suggests=("non-differentiable-operation",))
def check(run: Run) -> Iterator[Finding]:
    """Inside `forward`, what a layer gives is rounded or reduced to its sign, and goes on.

    ## What it detects
    `torch.sign`, `round`, `floor`, `ceil` or `heaviside` of a value that comes from a layer of the
    same model, whose result is handed to a further layer, without a straight-through estimator.

    ## Why it matters
    The slope of a step is 0 everywhere. The layers below get no gradient through it: they keep
    their first weights, or learn from a side term alone.

    ## What to do
    Use a smooth function (tanh, sigmoid), or let the gradient pass:
    `x + (torch.sign(x) - x).detach()`.

    ## When it is wrong
    Rounding that makes indices, and code that only runs outside of training, are left alone, as are
    classes that speak of `detach` or of a function of autograd.
    """
    project = project_of(run)
    for module in project.training_modules:
        if any(word in module.text for word in ("autograd.Function", "register_hook")):
            continue
        for cls in module.classes.values():
            forward = module.functions.get(f"{module.dotted(cls)}.forward")
            if forward is None or not project.is_module(module, cls):
                continue
            if any(word in ast.unparse(cls) for word in THROUGH):
                continue
            step = _step_between_layers(project, module, cls, forward)
            if step is not None:
                yield _finding(module, step)


def _finding(module: Module, step: ast.Call) -> Finding:
    return Finding(
        claim=f"No gradient passes `{ast.unparse(step)}`: the layers below it learn nothing by it",
        strength=Strength.STRONG,
        evidence=(module.cite(step, "a step function, of slope 0, between two layers"),),
        shows="non-differentiable-operation",
        is_symptom=True,
        location=module.location(module.statement_of(step) or step),
    )


def _step_between_layers(
    project: Project, module: Module, cls: ast.ClassDef, forward: Function
) -> ast.Call | None:
    for step in (n for n in ast.walk(forward) if isinstance(n, ast.Call)):
        value = _argument(module, step)
        if value is None or _is_aside(module, forward, step):
            continue
        if _comes_from_layer(forward, value, DEEP) and _goes_to_layer(module, forward, step):
            return step
    return None


def _argument(module: Module, call: ast.Call) -> ast.expr | None:
    """What a step function is taken of; none for any other call."""
    name = module.qualified(call.func) or ""
    if name.startswith("torch.") and name.removeprefix("torch.") in FLAT and call.args:
        return call.args[0]
    func = call.func
    is_method = isinstance(func, ast.Attribute) and func.attr in FLAT and not call.args
    return func.value if is_method and isinstance(func, ast.Attribute) else None


def _is_aside(module: Module, forward: Function, step: ast.Call) -> bool:
    """Tell whether it runs under a condition, or makes an index."""
    for above in module.enclosing(step):
        if above is forward:
            return False
        if isinstance(above, (ast.If, ast.IfExp, ast.Subscript, ast.Compare)):
            return True
        if isinstance(above, ast.Attribute) and above.attr in INDICES:
            return True
    return True


def _is_layer(call: ast.AST) -> bool:
    """`self.layer(x)` or `self.layers[0](x)`, and methods of one's own, which run layers."""
    func = call.func if isinstance(call, ast.Call) else None
    while isinstance(func, ast.Subscript):
        func = func.value
    return isinstance(func, ast.Attribute) and (key_of(func) or "").startswith("self.")


def _comes_from_layer(forward: Function, value: ast.expr, depth: int) -> bool:
    if any(map(_is_layer, ast.walk(value))):
        return True
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    if depth == 0 or not names:
        return False
    line = value.lineno
    made = (n for n in ast.walk(forward) if isinstance(n, ast.Assign) and n.lineno < line)
    bound = [n.value for n in made if names & {k for t in n.targets for k in _names(t)}]
    return any(_comes_from_layer(forward, v, depth - 1) for v in bound)


def _names(target: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def _goes_to_layer(module: Module, forward: Function, step: ast.Call) -> bool:
    """Tell whether the very result is an argument of a layer, at once or under a name."""
    above = module.parents.get(step)
    if isinstance(above, ast.Call) and step in above.args:
        return _is_layer(above)
    if not isinstance(above, ast.Assign) or len(above.targets) != 1:
        return False
    name = key_of(above.targets[0])
    for call in (n for n in ast.walk(forward) if isinstance(n, ast.Call) and _is_layer(n)):
        is_given = any(isinstance(a, ast.Name) and a.id == name for a in call.args)
        if is_given and call.lineno > above.lineno:
            return not _is_bound_between(forward, name or "", above.lineno, call.lineno)
    return False


def _is_bound_between(forward: Function, name: str, low: int, high: int) -> bool:
    made = (n for n in ast.walk(forward) if isinstance(n, ast.Assign) and low < n.lineno < high)
    return any(name in _names(t) for n in made for t in n.targets)


_MODEL = """
import torch
from torch import nn

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(8, 4)
        self.up = nn.Linear(4, 8)

    def forward(self, x):
        h = self.down(x)
        {line}
        return self.up(z)

model = Coder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    optimizer.step()
"""


def _model(line: str) -> Run:
    return make_run(sources={"train.py": _MODEL.format(line=line)})


FIRES = {
    "the sign": _model("z = torch.sign(h)"),
    "rounded": _model("z = h.round()"),
}

SILENT = {
    "smooth": _model("z = torch.tanh(h)"),
    "near miss: straight through": _model("z = h + (torch.sign(h) - h).detach()"),
    "near miss: only outside of training": _model(
        "z = h\n        if not self.training:\n            z = torch.sign(h)"
    ),
    "near miss: of the input, not of features": _model("z = h; shade = torch.round(x)"),
    "near miss: kept as a factor": _model("z = h * torch.sign(h)"),
}
