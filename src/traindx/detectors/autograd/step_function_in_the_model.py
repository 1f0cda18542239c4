"""A model passes its own features through a step function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Function, Module, key_of
from traindx.source.project import Project

FLAT = frozenset({"sign", "round", "floor", "ceil", "heaviside", "trunc", "sgn"})
# estimators let the gradient through by hand
THROUGH = ("detach", "autograd.Function", ".apply(", "register_hook", "no_grad", "gumbel",
           "requires_grad")  # fmt: skip
# of positions, durations and indices: these are no features
INDICES = frozenset({"long", "int", "to", "type", "short"})
DEEP = 4
# layers with nothing to learn, and those that take an index
WEIGHTLESS = re.compile(
    r"ReLU|Sigmoid|Tanh|Softmax|Softplus|GELU|SiLU|ELU|Hard|Identity|Flatten|Dropout|Pool|Pad|Fold|"
    r"Upsample|Pixel|Threshold|Shrink"
)
INDEXED = ("Embedding", "EmbeddingBag")


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
    Rounding that makes indices or the corners of a grid, and code that only runs outside of
    training, are left alone, as are classes that speak of `detach`, of `requires_grad` or of a
    function of autograd, and layers below that are not trained.
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
    layers = _Layers(project, module, cls)
    for step in (n for n in ast.walk(forward) if isinstance(n, ast.Call)):
        value = _argument(module, step)
        if value is None or _is_aside(module, forward, step):
            continue
        if not _comes_from_layer(layers, forward, value, DEEP):
            continue
        if _goes_to_layer(layers, forward, step) and not _is_corner(module, forward, step):
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


@dataclass(frozen=True)
class _Layers:
    """What a class calls on itself: `self.layer(x)`, `self.layers[0](x)`, `self.method(x)`."""

    project: Project
    module: Module
    cls: ast.ClassDef

    def name(self, call: ast.AST) -> str:
        func = call.func if isinstance(call, ast.Call) else None
        while isinstance(func, ast.Subscript):
            func = func.value
        key = (key_of(func) or "") if isinstance(func, ast.Attribute) else ""
        return key.split(".")[1] if key.startswith("self.") else ""

    def method(self, call: ast.AST) -> Function | None:
        return self.module.functions.get(f"{self.module.dotted(self.cls)}.{self.name(call)}")

    def made(self, call: ast.AST) -> list[ast.expr]:
        name = self.name(call)
        return self.project.lookup(self.module, call, f"self.{name}") if name else []

    def learns(self, call: ast.AST, depth: int) -> bool:
        """Tell whether a call runs weights that are trained; a method does by what it calls."""
        method = self.method(call)
        if method is not None:
            return depth > 0 and any(self.learns(n, depth - 1) for n in ast.walk(method))
        has_weights = any(self._may_have_weights(v) for v in self.made(call))
        return has_weights and not _is_left_out(self, self.name(call))

    def _may_have_weights(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Call):
            name = (self.module.qualified(value.func) or "").rsplit(".", 1)[-1]
            return not WEIGHTLESS.search(name)
        return not isinstance(value, (ast.Attribute, ast.Lambda, ast.Constant))

    def takes_features(self, call: ast.Call, place: int) -> bool:
        """Tell whether a layer gets an argument as features; a method may make an index of it."""
        method = self.method(call)
        if method is None:
            calls = [v for v in self.made(call) if isinstance(v, ast.Call)]
            names = [self.module.qualified(v.func) or "" for v in calls]
            return bool(self.made(call)) and not any(n.endswith(INDEXED) for n in names)
        given = [a.arg for a in method.args.args[1:]]
        end = (method.end_lineno or method.lineno) + 1
        if place >= len(given) or _is_bound_between(method, given[place], method.lineno, end):
            return False
        return any(
            isinstance(a, ast.Name) and a.id == given[place] and self.method(c) is None
            for c in ast.walk(method)
            if isinstance(c, ast.Call) and self.made(c)
            for a in c.args
        )


def _is_left_out(layers: _Layers, name: str) -> bool:
    """Tell whether training leaves a layer as it is: frozen, or not given to the optimizer."""
    modules = layers.project.training_modules
    kinds: tuple[type[ast.stmt], ...] = (ast.For, ast.Expr, ast.Assign)
    frozen = (n for m in modules for kind in kinds for n in m.nodes(kind))
    if any(_mentions(n, "requires_grad") and _mentions(n, name) for n in frozen):
        return True
    calls = (c for m in modules for c, called in m.calls() if called.startswith("torch.optim."))
    given = [_trained_part(c) for c in calls if c.args]
    return bool(given) and all(part and part != name for part in given)


def _mentions(node: ast.AST, name: str) -> bool:
    attributes = (n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute))
    return any(a.rstrip("_") == name.rstrip("_") for a in attributes)


def _trained_part(optimizer: ast.Call) -> str:
    """The part of a model that an optimizer is made for: `head` of `model.head.parameters()`."""
    call = optimizer.args[0]
    func = call.func if isinstance(call, ast.Call) else None
    is_part = isinstance(func, ast.Attribute) and func.attr == "parameters"
    key = (key_of(func) or "") if is_part and func is not None else ""
    parts = [p for p in key.split(".")[:-1] if p not in ("self", "module")]
    return parts[1] if len(parts) == 2 else ""


def _is_corner(module: Module, forward: Function, step: ast.Call) -> bool:
    """`u - base` of `base = floor(u)` weighs the corners of a grid: there the gradient passes."""
    above = module.parents.get(step)
    name = key_of(above.targets[0]) if isinstance(above, ast.Assign) else None
    subtracted = (
        n.right for n in ast.walk(forward) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub)
    )
    return name is not None and any(key_of(n) == name for n in subtracted)


def _comes_from_layer(layers: _Layers, forward: Function, value: ast.expr, depth: int) -> bool:
    if any(layers.learns(n, 2) for n in ast.walk(value)):
        return True
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    if depth == 0 or not names:
        return False
    line = value.lineno
    made = (n for n in ast.walk(forward) if isinstance(n, ast.Assign) and n.lineno < line)
    bound = [n.value for n in made if names & {k for t in n.targets for k in _names(t)}]
    return any(_comes_from_layer(layers, forward, v, depth - 1) for v in bound)


def _names(target: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def _goes_to_layer(layers: _Layers, forward: Function, step: ast.Call) -> bool:
    """Tell whether the very result is an argument of a layer, at once or under a name."""
    above = layers.module.parents.get(step)
    if isinstance(above, ast.Call) and step in above.args:
        return layers.takes_features(above, above.args.index(step))
    if not isinstance(above, ast.Assign) or len(above.targets) != 1:
        return False
    name = key_of(above.targets[0])
    for call in (n for n in ast.walk(forward) if isinstance(n, ast.Call) and layers.name(n)):
        places = [i for i, a in enumerate(call.args) if isinstance(a, ast.Name) and a.id == name]
        if places and call.lineno > above.lineno:
            is_same = not _is_bound_between(forward, name or "", above.lineno, call.lineno)
            return is_same and layers.takes_features(call, places[0])
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
        self.table = nn.Embedding(4, 8)

    def scaled(self, x):
        return x / x.norm()

    def look_up(self, cell):
        return self.table(cell.long())

    def below(self, x):
        return self.down(x)

    def forward(self, x):
        h = self.{below}(x)
        {line}
        return self.up(z)

model = Coder()
{freeze}
optimizer = torch.optim.SGD(model.{trained}parameters(), lr=0.1)
for x in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    optimizer.step()
"""


def _model(line: str, below: str = "down", freeze: str = "", trained: str = "") -> Run:
    text = _MODEL.format(line=line, below=below, freeze=freeze, trained=trained)
    return make_run(sources={"train.py": text})


FIRES = {
    "the sign": _model("z = torch.sign(h)"),
    "rounded": _model("z = h.round()"),
    "rounded, of a method with a layer": _model("z = h.round()", "below"),
}

SILENT = {
    "smooth": _model("z = torch.tanh(h)"),
    "near miss: straight through": _model("z = h + (torch.sign(h) - h).detach()"),
    "near miss: only outside of training": _model(
        "z = h\n        if not self.training:\n            z = torch.sign(h)"
    ),
    "near miss: of the input, not of features": _model("z = h; shade = torch.round(x)"),
    "near miss: of a method without weights": _model("z = h.floor()", "scaled"),
    "near miss: an index, made in a method": _model("c = h.floor(); z = self.look_up(c)"),
    "near miss: the corner of a cell": _model("c = h.floor(); z = (h - c) * self.up(c)"),
    "near miss: a frozen layer": _model(
        "z = torch.sign(h)", freeze="model.down.requires_grad_(False)"
    ),
    "near miss: only the layer above is trained": _model("z = torch.sign(h)", trained="up."),
    "near miss: kept as a factor": _model("z = h * torch.sign(h)"),
}
