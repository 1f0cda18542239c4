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
    class or of the method says so, and so is what stands under a condition on the mode.
    """
    project = project_of(run)
    for module in project.training_modules:
        for call, name in module.calls():
            cls = module.class_of(call)
            if cls is None or not project.is_module(module, cls) or _is_on_purpose(module, call):
                continue
            fault = _fault(project, module, call, name)
            if fault is None:
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
    """Tell whether the names around a call, or a condition on the mode, say that it is meant."""
    for above in module.enclosing(call):
        if isinstance(above, (ast.FunctionDef, ast.ClassDef)) and ON_PURPOSE.search(above.name):
            return True
        if isinstance(above, (ast.If, ast.IfExp)) and "train" in ast.unparse(above.test):
            return True
    return False


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
    "near miss: Monte-Carlo dropout": _net("x = F.dropout(x, 0.3)", name="MCDropoutNet"),
    "near miss: a rate of zero": _net("x = F.dropout(x, 0.0)"),
    "near miss: attention that follows the mode": _net(
        _ATTENTION.format("self.dropout if self.training else 0.0")
    ),
}
