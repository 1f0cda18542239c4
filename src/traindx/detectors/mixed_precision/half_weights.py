"""The weights that an optimizer updates are half precision."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import training_loops
from traindx.source.module import Module, key_of
from traindx.source.patches import diff, removing
from traindx.source.values import WRAPPERS, Kind

HALVES = ("torch.float16", "torch.half")
WIDER = re.compile(r"float32|bfloat16|float64|double|\bfloat\b")
# what puts trainable layers into a model, or makes some of it float32 again
ADAPTS = re.compile(
    r"adapter|lora|peft|prepare_model|inject|kbit|^float$|^bfloat16$|^double$", re.I
)
MASTER = ("master", "fp32", "float()", "FP16_Optimizer", "apex", "deepspeed")


@detector(needs=("source",), suggests=("half-precision-weights",))
def check(run: Run) -> Iterator[Finding]:
    """A model is converted to half precision and trained by a plain optimizer.

    ## What it detects
    `model.half()` or `model.to(torch.float16)` before the training loop, and an optimizer of
    torch's own over the parameters of that very model, without a copy in full precision.

    ## Why it matters
    Half precision has eleven bits: an update smaller than about 1/2000 of a weight is lost, and
    Adam's epsilon of 1e-8 is zero. The loss stalls early or turns NaN.

    ## What to do
    Keep the weights in float32 and use `torch.autocast` with a gradient scaler, or bfloat16 with an
    optimizer that rounds stochastically.

    ## When it is wrong
    A frozen half-precision base under trainable adapters in full precision is fine. Hence a model
    is left alone that is made anew from the converted one, given new layers or converted again
    before the optimizer is made.
    """
    for loop in training_loops(project_of(run)):
        for step in loop.does(Do.STEP):
            found = _halved(step)
            if found is None or not loop.does(Do.BACKWARD):
                continue
            statement, name = found
            text = ast.unparse(statement)
            is_alone = isinstance(statement, ast.Expr)
            patch = diff(step.module, removing(step.module, statement)) if is_alone else None
            yield Finding(
                claim=f"`{text}` makes the weights of `{name}` half precision, and "
                f"`{step.target}` updates them as they are",
                strength=Strength.STRONG,
                evidence=(
                    step.module.cite(statement, "the weights become half precision here"),
                    step.module.cite(step.node, "and are updated here"),
                ),
                shows="half-precision-weights",
                is_symptom=True,
                location=step.module.location(statement),
                patch=patch,
            )
            break


def _halved(step: Act) -> tuple[ast.stmt, str] | None:
    made, module = step.value.call, step.module
    is_torch = step.value.made_by.startswith("torch.optim.")
    if made is None or step.value.kind is not Kind.OPTIMIZER or not is_torch or not made.args:
        return None
    held = made.args[0]
    func = held.func if isinstance(held, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "parameters" or _has_master(module):
        return None
    name = key_of(func.value)
    scope: ast.AST = module.function_of(made) or module.tree
    for node in getattr(scope, "body", []):
        if node.lineno > step.line or not isinstance(node, (ast.Expr, ast.Assign)):
            continue
        if name and _is_halving(module, node.value, name):
            lines = range(node.lineno + 1, made.lineno)
            between = (n for n in ast.walk(scope) if getattr(n, "lineno", 0) in lines)
            is_changed = any(_is_changed(module, n, name) for n in between)
            return None if is_changed else (node, name)
    return None


def _is_changed(module: Module, node: ast.AST, name: str) -> bool:
    """Tell whether other weights may take the place of the halved ones, or join them."""
    if isinstance(node, ast.Assign):
        parts = [p for t in node.targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
        keys = [key_of(p) or "" for p in parts]
        if any(k.startswith(f"{name}.") and not _is_setting(k) for k in keys):
            return True  # a new head, in full precision
        return name in keys and not _is_model_again(module, node.value, name)
    if not isinstance(node, ast.Call):
        return False
    last = (module.qualified(node.func) or "").rsplit(".", 1)[-1]
    given = [key_of(a) for a in (*node.args, *(k.value for k in node.keywords))]
    if name in given and ADAPTS.search(last):
        return True
    is_own = isinstance(node.func, ast.Attribute) and key_of(node.func.value) == name
    is_other_type = last in ("to", "type") and WIDER.search(ast.unparse(node)) is not None
    return is_own and (is_other_type or ADAPTS.search(last) is not None)


def _is_setting(key: str) -> bool:
    return any(word in key for word in ("requires_grad", "config", "training"))


def _is_model_again(module: Module, value: ast.expr, name: str) -> bool:
    """Tell whether these are the same weights: `model.cuda()`, `torch.compile(model)`."""
    node = value
    while isinstance(node, ast.Call):
        own = node.func.value if isinstance(node.func, ast.Attribute) else None
        last = node.func.attr if isinstance(node.func, ast.Attribute) else key_of(node.func) or ""
        if module.aliases.get(last, last).rsplit(".", 1)[-1] not in WRAPPERS:
            return False
        is_method = own is not None and name in {key_of(n) for n in ast.walk(own)}
        inner = own if is_method else next(iter(node.args), None)
        if inner is None:
            return False
        node = inner
    return key_of(node) == name


def _is_halving(module: Module, value: ast.expr, name: str) -> bool:
    """Tell whether a chain of calls on the model converts it: `model.cuda().half()`."""
    node, is_half = value, False
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = [module.qualified(a) for a in (*node.args, *(k.value for k in node.keywords))]
        is_half |= node.func.attr == "half" or (
            node.func.attr == "to" and any(g in HALVES for g in given)
        )
        node = node.func.value
    return is_half and key_of(node) == name


def _has_master(module: Module) -> bool:
    return any(word in module.text for word in MASTER)


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(4, 2)
{convert}
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for data, target in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
{after}
"""


def _program(convert: str, after: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(convert=convert, after=after)})


FIRES = {
    "half": _program("model.half()"),
    "half on the device": _program("model = model.cuda().half()"),
    "wrapped afterwards": _program(
        "model.half()\nmodel = nn.DataParallel(model.cuda())\nmodel = torch.compile(model)"
    ),
    "to float16": _program("model.to(torch.float16)"),
}

SILENT = {
    "bfloat16": _program("model.to(torch.bfloat16)"),
    "near miss: half after training, for inference": _program("", "model.half()"),
    "near miss: adapters are added to it": _program(
        "model = model.half().cuda()\nmodel = get_peft_model(model, LoraConfig(r=8))"
    ),
    "near miss: adapters are put into it": _program("model.half()\nadd_lora(model, rank=8)"),
    "near miss: a new head in full precision": _program(
        "model.half()\nmodel.requires_grad_(False)\nmodel.head = nn.Linear(4, 2)"
    ),
    "near miss: converted again": _program("model.half()\nmodel.to(torch.float32)"),
    "near miss: the teacher only": _program("teacher.half()"),
}
