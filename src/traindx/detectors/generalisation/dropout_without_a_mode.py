"""Dropout in a model that no `eval()` switches off."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.patches import diff, replacing
from traindx.source.project import Project

LAYERS = re.compile(r"^(?:torch\.)?nn\.(?:Alpha|FeatureAlpha)?Dropout[123]?d?$")
FUNCTIONS = re.compile(r"functional\.(?:feature_)?(?:alpha_)?dropout[123]?d?$")
# dropout at test time on purpose, and noise that is part of the method
ON_PURPOSE = re.compile(
    r"(?:^|_)mc|mc_?dropout|monte|bayes|uncertain|stochastic|ensemble|augment|corrupt|nois|mask"
    r"|perturb|sampl|always",
    re.IGNORECASE,
)
MODE = re.compile(r"train|eval|infer|determin|is_test|\bmode\b", re.IGNORECASE)
LEAVES = (ast.Return, ast.Raise, ast.Continue)


@detector(needs=("source",), suggests=("validation-in-train-mode",))
def check(run: Run) -> Iterator[Finding]:
    """A model drops units in evaluation too, for its dropout does not know the mode.

    ## What it detects
    In the methods of a module: `F.dropout(x)` without `training=self.training` (its default is
    True), a dropout layer that is made where it is used (`nn.Dropout(0.5)(x)`: a new layer is in
    training mode), and attention that is given a `dropout_p` whatever the mode.

    ## Why it matters
    `model.eval()` does not reach it. Validation and inference run with units dropped at random:
    the scores are lower than the model's, and differ from call to call.

    ## What to do
    Pass `training=self.training`, or make the layer once in `__init__`.

    ## When it is wrong
    Monte-Carlo dropout and noise that belongs to the method are left alone where the name of the
    class or of the method says so, and so is what stands under a condition on the mode, what comes
    after a return for the other mode, and a rate that is made from the mode.
    """
    project = project_of(run)
    for module in project.training_modules:
        for call, name in module.calls():
            cls = module.class_of(call)
            if cls is None or not project.is_module(module, cls) or _is_on_purpose(module, call):
                continue
            fault = _fault(project, module, call, name)
            if fault is None or _knows_mode(project, module, cls, call):
                continue
            says, patch = fault
            yield Finding(
                claim=f"`{cls.name}` drops units in evaluation too: {says}",
                strength=Strength.STRONG,
                evidence=(module.cite(call, f"`{module.source(call)}`: {says}"),),
                shows="validation-in-train-mode",
                location=module.location(call),
                patch=patch,
            )


def _fault(
    project: Project, module: Module, call: ast.Call, name: str
) -> tuple[str, str | None] | None:
    if FUNCTIONS.search(name):
        return _of_function(module, call)
    if name.endswith("functional.scaled_dot_product_attention"):
        return _of_attention(project, module, call)
    made = call.func
    is_layer = isinstance(made, ast.Call) and LAYERS.match(module.qualified(made.func) or "")
    if isinstance(made, ast.Call) and is_layer and literal(argument(made, "p", 0)) != 0:
        return "a layer made in `forward` is always in training mode", None
    return None


def _of_function(module: Module, call: ast.Call) -> tuple[str, str | None] | None:
    mode = argument(call, "training", 2)
    is_always = mode is None or literal(mode) is True
    if not is_always or not call.args or literal(argument(call, "p", 1)) == 0:
        return None
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    text = module.source(call)
    if mode is not None:
        patch = diff(module, replacing(mode, "self.training"))
    else:
        patch = diff(module, replacing(call, f"{text[:-1].rstrip(', ')}, training=self.training)"))
    return "it is not told the mode and takes it to be training", patch


def _of_attention(
    project: Project, module: Module, call: ast.Call
) -> tuple[str, str | None] | None:
    given = argument(call, "dropout_p", 4)
    if given is None or not (key_of(given) or "").startswith("self."):
        return None
    values = project.lookup(module, call, key_of(given) or "")
    if not values or any(literal(v) == 0 for v in values):
        return None
    # an attribute that follows the mode, or a layer, is no rate that is always on
    if any("training" in ast.unparse(v) or isinstance(v, ast.Call) for v in values):
        return None
    text = module.source(given)
    patch = diff(module, replacing(given, f"{text} if self.training else 0.0"))
    return "the attention drops whatever the mode is", patch


def _is_on_purpose(module: Module, call: ast.Call) -> bool:
    """Tell whether the names around a call say that it is meant, or for training only."""
    around = [n for n in module.enclosing(call) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    is_for_training = any(isinstance(n, ast.FunctionDef) and "train" in n.name for n in around)
    return is_for_training or any(ON_PURPOSE.search(n.name) for n in around)


def _knows_mode(project: Project, module: Module, cls: ast.ClassDef, call: ast.Call) -> bool:
    """Tell whether the mode decides about a call: around it, before it, or in its rate."""
    own = {n.name for n in cls.body if isinstance(n, ast.FunctionDef)}
    if own & {"train", "eval"}:
        return True  # a class that sets its mode itself may set its rate with it
    return (
        _is_under_mode(project, module, call)
        or _is_left_before(project, module, call)
        or _is_rate_of_mode(project, module, call, own)
        or _is_called_under_mode(project, module, cls, call)
    )


def _asks_for_mode(project: Project, module: Module, at: ast.AST, node: ast.expr) -> bool:
    """Tell whether a value speaks of the mode, or a name in it was made from one that does."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - {"self"}
    made = [v for name in names for v in project.lookup(module, at, name)]
    return any(MODE.search(ast.unparse(v)) for v in (node, *made))


def _is_under_mode(project: Project, module: Module, node: ast.AST) -> bool:
    tests = []
    for above in module.enclosing(node):
        if isinstance(above, (ast.If, ast.IfExp, ast.While)):
            tests.append(above.test)
        elif isinstance(above, ast.BoolOp):
            tests.append(above)
    return any(_asks_for_mode(project, module, node, test) for test in tests)


def _is_left_before(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether one of the modes left the function before: `if not self.training: return x`."""
    function = module.function_of(call)
    earlier = (
        n
        for n in (ast.walk(function) if function is not None else ())
        if isinstance(n, ast.If) and n.lineno < call.lineno
    )
    return any(
        isinstance(branch[-1], LEAVES) and _asks_for_mode(project, module, call, n.test)
        for n in earlier
        for branch in (n.body, n.orelse)
        if branch
    )


def _is_rate_of_mode(project: Project, module: Module, call: ast.Call, methods: set[str]) -> bool:
    """Tell whether a rate follows the mode, or is computed where that cannot be seen."""
    made = call.func if isinstance(call.func, ast.Call) else call
    given = [*made.args, *(k.value for k in made.keywords if k.arg != "training")]
    rates = (n for n in given if n not in call.args[:1])
    for rate in rates:
        is_own = isinstance(rate, ast.Attribute) and rate.attr in methods
        if is_own or isinstance(rate, ast.Call) or _asks_for_mode(project, module, call, rate):
            return True
    return False


def _is_called_under_mode(
    project: Project, module: Module, cls: ast.ClassDef, call: ast.Call
) -> bool:
    """Tell whether the method around a call is itself called under a condition on the mode."""
    function = module.function_of(call)
    name = f"self.{function.name}" if function is not None else ""
    calls = (n for n in ast.walk(cls) if isinstance(n, ast.Call) and key_of(n.func) == name)
    return any(
        _is_under_mode(project, module, n) or _is_left_before(project, module, n) for n in calls
    )


_NET = """
import torch
import torch.nn.functional as F
from torch import nn

class {name}(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)
        self.drop = nn.Dropout(0.5)
        self.dropout = dropout

    def forward(self, x):
        x = F.relu(self.fc(x))
        {line}
        return self.head(x)
"""


def _net(line: str, name: str = "Net") -> Run:
    return make_run(sources={"model.py": _NET.format(line=line, name=name)})


_ATTENTION = "x = F.scaled_dot_product_attention(x, x, x, dropout_p={})"

FIRES = {
    "a function that is not told the mode": _net("x = F.dropout(x, 0.3)"),
    "told that it always trains": _net("x = F.dropout2d(x, 0.1, training=True)"),
    "a layer made in forward": _net("x = nn.Dropout(0.5)(x)"),
    "attention with a fixed rate": _net(_ATTENTION.format("self.dropout")),
}

SILENT = {
    "told the mode": _net("x = F.dropout(x, 0.3, self.training)"),
    "a layer of the model": _net("x = self.drop(x)"),
    "near miss: under a condition on the mode": _net("x = F.dropout(x) if self.training else x"),
    "near miss: the other mode has left": _net(
        "if not self.training: return self.head(x)\n        x = F.dropout(x, 0.3)"
    ),
    "near miss: the other mode has left, by a name": _net(
        "on = self.training\n        if not on: return self.head(x)\n        x = F.dropout(x, 0.3)"
    ),
    "near miss: a rate that follows the mode": _net(
        "x = F.dropout(x, p=self.dropout if self.training else 0.0)"
    ),
    "near miss: such a rate under a name": _net(
        "rate = self.dropout * self.training\n        x = F.dropout(x, rate)"
    ),
    "near miss: a method that is called in training only": _net(
        "x = self.thin(x) if self.training else x\n        return self.head(x)\n\n"
        "    def thin(self, x):\n        x = F.dropout(x, 0.3)"
    ),
    "near miss: Monte-Carlo dropout": _net("x = F.dropout(x, 0.3)", name="MCDropoutNet"),
    "near miss: a rate of zero": _net("x = F.dropout(x, 0.0)"),
    "near miss: attention that follows the mode": _net(
        _ATTENTION.format("self.dropout if self.training else 0.0")
    ),
}
