"""An optimizer was made with nothing to optimise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.errors import Culprit, explain, make_failed_run, match_root
from traindx.source.module import Module, key_of
from traindx.source.patches import diff, replacing

MESSAGE = re.compile(r"optimizer got an empty parameter (?:list|group)")
REPLICATED = re.compile(r"module doesn't have any parameters that require a gradient")
GUESSES = {
    "unregistered-submodules": Strength.MODERATE,
    "frozen-parameters": Strength.MODERATE,
    "api-misuse": Strength.MODERATE,
}


@detector(needs=("failure",), suggests=tuple(GUESSES))
def check(run: Run) -> Iterator[Finding]:
    """An optimizer gets an empty list of parameters.

    ## What it detects
    "optimizer got an empty parameter list", and DistributedDataParallel's word for a model that is
    frozen as a whole. With the source, why: layers in a plain list or dict,
    a filter on `requires_grad` after everything was frozen, or a generator that was used up.

    ## Why it matters
    The message is the lucky case: with one registered layer the model would have trained without
    the others and said nothing.

    ## What to do
    Hold layers in `nn.ModuleList` or `nn.ModuleDict`, unfreeze what should train, and call
    `model.parameters()` anew for each use.

    ## When it is wrong
    A model with lazy or later-added layers has no parameters yet: make the optimizer afterwards.
    """
    hit = match_root(run, MESSAGE, REPLICATED)
    if hit is None:
        return
    failure, found = hit
    if found.re is REPLICATED:
        claim = "A model is to be trained in parallel, and none of its parameters is trainable"
        yield explain(run, failure, claim, suggests={"frozen-parameters": Strength.STRONG})
        return
    shows, culprit = _reason(project_of(run))
    claim = "The optimizer is given no parameter at all"
    if culprit is not None:
        claim += f": {culprit.says}"
    suggests = {} if shows else GUESSES
    yield explain(run, failure, claim, shows=shows, suggests=suggests, culprit=culprit)


def _reason(project: Project) -> tuple[str | None, Culprit | None]:
    for module in project.modules:
        for cls in module.classes.values():
            found = _hidden_layers(module, cls) if project.is_module(module, cls) else None
            if found is not None:
                return "unregistered-submodules", found
    for module in project.modules:
        found = _frozen(module)
        if found is not None:
            return "frozen-parameters", found
        found = _used_up(module)
        if found is not None:
            return "api-misuse", found
    return None, None


def _hidden_layers(module: Module, cls: ast.ClassDef) -> Culprit | None:
    """`self.layers = [nn.Linear(…), …]`: a list that the module does not look into."""
    for node in ast.walk(cls):
        target = key_of(node.targets[0]) if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not target or not target.startswith("self."):
            continue
        value = node.value
        is_plain = isinstance(value, (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple))
        layers = [c for c, name in module.calls(value) if name.startswith("torch.nn.")]
        if is_plain and layers:
            kind = "ModuleDict" if isinstance(value, (ast.Dict, ast.DictComp)) else "ModuleList"
            text = ast.get_source_segment(module.text, value) or ast.unparse(value)
            maker = _written(module, layers[0])
            patch = diff(module, replacing(value, f"{maker}.{kind}({text})")) if maker else None
            says = f"{target} is a plain container, its layers are not registered"
            return Culprit(module, node, says, patch)
    return None


def _written(module: Module, layer: ast.Call) -> str:
    """How this file calls torch.nn."""
    return ast.unparse(layer.func.value) if isinstance(layer.func, ast.Attribute) else ""


def _frozen(module: Module) -> Culprit | None:
    if not re.search(r"filter\(|\bif \w+\.requires_grad", module.text):
        return None
    if re.search(r"requires_grad\s*=\s*True|requires_grad_\((?:True)?\)", module.text):
        return None
    for node in ast.walk(module.tree):
        text = ast.unparse(node) if isinstance(node, (ast.Assign, ast.Expr)) else ""
        if re.search(r"\.requires_grad = False$|\.requires_grad_\(False\)$", text):
            return Culprit(module, node, "every parameter is frozen, and none passes the filter")
    return None


def _used_up(module: Module) -> Culprit | None:
    """`params = model.parameters()` that is counted first and then given to the optimizer."""
    for node in ast.walk(module.tree):
        is_made = isinstance(node, ast.Assign) and ast.unparse(node.value).endswith(".parameters()")
        name = key_of(node.targets[0]) if isinstance(node, ast.Assign) and is_made else None
        uses = len(re.findall(rf"\b{re.escape(name)}\b", module.text)) if name else 0
        if name and uses > 2:
            return Culprit(module, node, f"{name} is a generator, which a first use empties")
    return None


_MODEL = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(8, 8), nn.Linear(8, 1)]
"""
_ERROR = "ValueError: optimizer got an empty parameter list"
_CODE = "optimizer = torch.optim.Adam(model.parameters())"

FIRES = {
    "frozen, under DDP": make_failed_run(
        "RuntimeError: DistributedDataParallel is not needed when a module doesn't have any "
        "parameters that require a gradient.",
        "model = DDP(model)",
    ),
    "the message alone": make_failed_run(_ERROR, _CODE),
    "a plain list": make_failed_run(_ERROR, _CODE, sources={"model.py": _MODEL}),
}

SILENT = {
    "near miss: parameters twice": make_failed_run(
        "ValueError: some parameters appear in more than one parameter group", _CODE
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
