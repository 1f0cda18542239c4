"""All weights of a model start at the same value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Function, Module, key_of, literal
from traindx.source.project import Project
from traindx.source.values import value_of

LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d")
OVER = ("parameters", "named_parameters", "state_dict")
WHOLE = re.compile(r"model|net", re.IGNORECASE)
CONSTANT = {"constant_": None, "zeros_": 0.0, "ones_": 1.0}


@detector(needs=("source",), suggests=("bad-initialisation",))
def check(run: Run) -> Iterator[Finding]:
    """Every linear or convolution weight of a model is set to one constant.

    ## What it detects
    A function given to `model.apply` that fills the weight of every linear or convolution layer
    with one value, and a loop over `model.parameters()` that does so with every parameter.

    ## Why it matters
    All units of a layer compute the same and get the same gradient for ever: the layer is one unit
    wide. With zeros nothing reaches the layers below at all.

    ## What to do
    Keep torch's default, or use `nn.init.kaiming_normal_` or `xavier_uniform_`; zero the bias only.

    ## When it is wrong
    A zero last layer, residual branch or adapter is good practice; single layers are not looked at,
    and neither are biases and normalisation layers, nor parameters that are written again later.
    """
    project = project_of(run)
    for module in project.training_modules:
        applied = _applied(module)
        for name, function in module.functions.items() if applied else ():
            owners = applied.get(name.rsplit(".", 1)[-1], [])
            for call, kinds in _fills(module, function) if owners else ():
                if any(_has_several(project, module, o, kinds) for o in owners):
                    yield _finding(module, call, "every linear or convolution weight")
        for node in module.nodes(ast.For):
            filled = _fills_everything(module, node)
            if filled is not None:
                yield _finding(module, filled, "every parameter")


def _finding(module: Module, node: ast.AST, what: str) -> Finding:
    return Finding(
        claim=f"`{ast.unparse(node)}` gives {what} of the model the same value",
        strength=Strength.STRONG,
        evidence=(module.cite(node, "one constant for all units"),),
        shows="bad-initialisation",
        is_symptom=True,
        location=module.location(node),
    )


def _applied(module: Module) -> dict[str, list[ast.expr]]:
    """The names of the functions that are given to `apply`, and the modules they are applied to."""
    found: dict[str, list[ast.expr]] = {}
    for call, name in module.calls():
        if name.endswith(".apply") and len(call.args) == 1 and isinstance(call.func, ast.Attribute):
            given = (key_of(call.args[0]) or "").rsplit(".", 1)[-1]
            found.setdefault(given, []).append(call.func.value)
    return found


def _has_several(project: Project, module: Module, owner: ast.expr, kinds: set[str]) -> bool:
    """Tell whether a module has more than one of the layers, so that a hidden one is among them.

    A part of a model with a single layer, and a linear model, may well start at zero.
    """
    key = key_of(owner)
    if key == "self":
        return _count(module.class_of(owner), kinds) > 1
    made = value_of(project, module, module.function_of(owner) or module.tree, owner).call
    home = None if made is None else project.find_class(module, module.qualified(made.func) or "")
    if home is not None:
        return _count(home[1], kinds) != 1
    if made is not None and (module.qualified(made.func) or "").startswith("torch.nn."):
        return _count(made, kinds) > 1 or any(isinstance(n, ast.Starred) for n in made.args)
    return isinstance(owner, ast.Name) and bool(WHOLE.search(owner.id))


def _count(node: ast.AST | None, kinds: set[str]) -> int:
    calls = (n for n in ast.walk(node) if isinstance(n, ast.Call)) if node is not None else ()
    return sum((key_of(c.func) or "").rsplit(".", 1)[-1] in kinds for c in calls)


def _fills(module: Module, function: Function) -> Iterator[tuple[ast.Call, set[str]]]:
    """The calls that fill `m.weight` with a constant, and the layers by whose class it is tested.

    A weight that is written to again is not constant in the end: an identity, a mask.
    """
    for call, _ in module.calls(function):
        target = _constant_target(module, call)
        if not isinstance(target, ast.Attribute) or target.attr != "weight":
            continue
        around = [n for n in module.enclosing(call) if isinstance(n, ast.If)]
        if not isinstance(target.value, ast.Name) or len(around) != 1:
            continue
        kinds = _layers_tested(around[0].test)
        is_last = _is_in_body(around[0], call) and not _is_written_again(around[0].body, call)
        if kinds and is_last:
            yield call, kinds


def _is_written_again(body: list[ast.stmt], call: ast.Call) -> bool:
    for node in (n for s in body if s.lineno > call.lineno for n in ast.walk(s)):
        written: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.Call) and _called(node).endswith("_"):
            written = [node]
        if any(_is_weight(n) for w in written for n in ast.walk(w)):
            return True
    return False


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else key_of(call.func) or ""


def _is_weight(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "weight"


def _layers_tested(test: ast.expr) -> set[str]:
    names = {
        n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(test)
    }
    is_test = isinstance(test, ast.Call) and key_of(test.func) == "isinstance"
    is_layer = is_test and not any("Norm" in n for n in names)
    return names & set(LAYERS) if is_layer else set()


def _is_in_body(block: ast.If, call: ast.Call) -> bool:
    return any(call in ast.walk(s) for s in block.body)


def _constant_target(module: Module, call: ast.Call) -> ast.expr | None:
    """What a call fills with one value: `init.constant_(w, c)`, `w.data.fill_(c)`, `w.zero_()`."""
    name = module.qualified(call.func) or ""
    last = name.rsplit(".", 1)[-1]
    if last in CONSTANT and ".init." in name and call.args:
        is_literal = last != "constant_" or (len(call.args) > 1 and _is_number(call.args[1]))
        return call.args[0] if is_literal else None
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("fill_", "zero_"):
        is_literal = func.attr == "zero_" or (bool(call.args) and _is_number(call.args[0]))
        owner = func.value
        if isinstance(owner, ast.Attribute) and owner.attr == "data":
            owner = owner.value
        return owner if is_literal else None
    return None


def _is_number(node: ast.expr) -> bool:
    return isinstance(literal(node), (int, float))


def _fills_everything(module: Module, loop: ast.For) -> ast.Call | None:
    func = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    is_all = isinstance(func, ast.Attribute) and func.attr == "parameters"
    statement = loop.body[0]
    if not is_all or len(loop.body) != 1 or not isinstance(statement, ast.Expr):
        return None
    call = statement.value
    target = _constant_target(module, call) if isinstance(call, ast.Call) else None
    is_model = isinstance(func, ast.Attribute) and "model" in (key_of(func.value) or "").lower()
    is_parameter = isinstance(target, ast.Name) and key_of(loop.target) == target.id
    trains = "backward" in module.text and _is_initialising(module, loop)
    return call if is_parameter and is_model and trains and isinstance(call, ast.Call) else None


def _is_initialising(module: Module, loop: ast.For) -> bool:
    """Tell whether a loop over parameters is the last to write them before training.

    Weights that are averaged, over clients or over time, start from zero and are added to.
    """
    if any(isinstance(n, (ast.For, ast.While)) for n in module.enclosing(loop)):
        return False
    function = module.function_of(loop)
    owner = _owner(loop.iter)
    if function is not None and owner in {a.arg for a in function.args.args}:
        return "init" in function.name.lower() and owner != "self"
    scope: ast.AST = function or module.tree
    later = (n for n in ast.walk(scope) if int(getattr(n, "lineno", 0)) > (loop.end_lineno or 0))
    return not any(_writes_parameters(n, owner) for n in later)


def _owner(node: ast.expr) -> str:
    """The model in `model.parameters()`."""
    func = node.func if isinstance(node, ast.Call) else None
    return (key_of(func.value) or "") if isinstance(func, ast.Attribute) else ""


def _writes_parameters(node: ast.AST, model: str) -> bool:
    if isinstance(node, ast.For):
        is_over = any(_is_call_of(n, model, OVER) for n in ast.walk(node.iter))
        return is_over and any(_writes(n) for s in node.body for n in ast.walk(s))
    return _is_call_of(node, model, ("load_state_dict", "apply"))


def _is_call_of(node: ast.AST, model: str, methods: tuple[str, ...]) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    is_method = isinstance(func, ast.Attribute) and func.attr in methods
    return is_method and isinstance(func, ast.Attribute) and key_of(func.value) == model


def _writes(node: ast.AST) -> bool:
    """`p.data.add_(…)`, `p.data = …`, `p += …`."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(t, ast.Attribute) and t.attr == "data" for t in targets) or (
            isinstance(node, ast.AugAssign)
        )
    func = node.func if isinstance(node, ast.Call) else None
    is_in_place = isinstance(func, ast.Attribute) and func.attr.endswith("_")
    return is_in_place and isinstance(func, ast.Attribute) and func.attr != "requires_grad_"


_PROGRAM = """
import torch
from torch import nn

def init_weights(m):
    if isinstance(m, {layer}):
        {fill}

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
model.apply(init_weights)
"""


def _program(fill: str, layer: str = "nn.Linear") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(fill=fill, layer=layer)})


_AVERAGE = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for p in model.parameters():
    p.data.zero_()
{after}
loss.backward()
"""
_SUMMED = "for p, q in zip(model.parameters(), other.parameters()):\n    p.data.add_(q.data / n)"
_GATE = """
import torch
from torch import nn

def zero_init(m):
    if isinstance(m, nn.Conv2d):
        nn.init.zeros_(m.weight)

class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.SiLU(), nn.Conv2d(8, 8, 3))
        self.gate = nn.Sequential(nn.SiLU(), nn.Conv2d(8, 3, 1))
        self.{part}.apply(zero_init)
"""


def _source(text: str) -> Run:
    return make_run(sources={"train.py": text})


FIRES = {
    "zeros": _program("nn.init.zeros_(m.weight)"),
    "a constant": _program("nn.init.constant_(m.weight, 0.5)"),
    "fill": _program("m.weight.data.fill_(0)"),
    "beside normalisation layers": _program(
        "nn.init.zeros_(m.weight)\n"
        "    elif isinstance(m, nn.BatchNorm1d):\n        nn.init.ones_(m.weight)"
    ),
    "every parameter": _source(_AVERAGE.format(after="")),
    "a part with a hidden layer": _source(_GATE.format(part="body")),
}

SILENT = {
    "kaiming": _program("nn.init.kaiming_normal_(m.weight)"),
    "near miss: a gate of one layer": _source(_GATE.format(part="gate")),
    "near miss: a linear model": _source(
        _PROGRAM.format(fill="nn.init.zeros_(m.weight)", layer="nn.Linear").replace(
            "nn.Linear(4, 8), nn.ReLU(), ", ""
        )
    ),
    "near miss: an average is taken": _source(_AVERAGE.format(after=_SUMMED)),
    "near miss: weights are loaded": _source(
        _AVERAGE.format(after="model.load_state_dict(torch.load(path))")
    ),
    "near miss: an identity": _program(
        "nn.init.zeros_(m.weight)\n        m.weight.data.fill_diagonal_(1.0)"
    ),
    "near miss: the bias only": _program("nn.init.zeros_(m.bias)"),
    "near miss: a normalisation layer": _program("nn.init.ones_(m.weight)", "nn.BatchNorm1d"),
}
