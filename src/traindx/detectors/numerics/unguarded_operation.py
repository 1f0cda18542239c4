"""A loss holds an operation that breaks at the edge of its domain."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.inputs import holds, values_from_inputs
from traindx.source.loaders import resolve
from traindx.source.module import Function, Module, key_of
from traindx.source.project import Project

PROBABILITIES = frozenset({"softmax", "sigmoid"})
NORMS = frozenset({"norm", "vector_norm"})


@detector(needs=("source",), suggests=("unstable-operation",))
def check(run: Run) -> Iterator[Finding]:
    """A loss takes the logarithm of a probability, divides by a norm, or takes a root, unguarded.

    ## What it detects
    In functions and classes named for a loss: the logarithm of a softmax or sigmoid, a division by
    a norm, the square root of a sum of squares, or an arc cosine, with nothing that keeps the
    argument away from the edge.

    ## Why it matters
    Log of 0 is −∞, x/0 is NaN, and the gradient of a root is infinite at 0. One sample at the edge
    turns the loss, then every weight, into NaN.

    ## What to do
    `log_softmax` and `logsigmoid`; `F.normalize`; an epsilon inside the root; a clamp before acos.

    ## When it is wrong
    The edge may never be reached by the data; hence a remark, which counts once the loss is NaN.
    """
    project = project_of(run)
    for module in project.training_modules:
        for name, function in module.functions.items():
            if "loss" not in name.lower() or _runs_no_backward(function):
                continue
            for node, what, better in _edges(project, module, function):
                yield Finding(
                    claim=f"The loss holds an operation that can break: {what}",
                    strength=Strength.MODERATE,
                    evidence=(module.cite(node, f"{what}; {better}"),),
                    suggests={"unstable-operation": Strength.MODERATE},
                    location=module.location(node),
                )


def _runs_no_backward(function: ast.AST) -> bool:
    decorators = getattr(function, "decorator_list", [])
    return any("grad" in ast.unparse(d) for d in decorators)


def _edges(
    project: Project, module: Module, function: Function
) -> Iterator[tuple[ast.AST, str, str]]:
    given_in = values_from_inputs(function)
    for node in ast.walk(function):
        is_division = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        divisor = node.right if is_division and isinstance(node, ast.BinOp) else None
        if divisor is not None and _called(module, divisor) in NORMS and holds(divisor, given_in):
            yield node, "a division by a norm", "F.normalize guards it"
        if not isinstance(node, ast.Call):
            continue
        last, given = _called(module, node), _operand(module, node)
        if given is None:
            continue
        made = resolve(project, module, function, given)
        inner = _called(module, made) if isinstance(made, ast.Call) else ""
        if last == "log" and inner in PROBABILITIES:
            yield node, f"the logarithm of a {inner}", f"log_{inner} (F.logsigmoid) is exact"
        elif last == "sqrt" and isinstance(made, ast.Call) and _is_sum_of_squares(made):
            yield node, "the root of a sum of squares", "its gradient is infinite at 0"
        elif last in ("acos", "arccos") and inner not in ("clamp", "clip") and not _is_bound(made):
            yield node, "an arc cosine", "its gradient is infinite at ±1; clamp before"


def _is_bound(made: ast.expr | None) -> bool:
    """Arithmetic may keep the argument inside its domain; it is given the benefit of the doubt."""
    return isinstance(made, ast.BinOp)


def _called(module: Module, node: ast.expr | None) -> str:
    """The last part of what a call of torch calls: a function of torch, or a method."""
    if not isinstance(node, ast.Call):
        return ""
    name = module.qualified(node.func) or ""
    if name.startswith(("torch.", "F.")):
        return name.rsplit(".", 1)[-1]
    is_method = isinstance(node.func, ast.Attribute) and name.split(".")[0] not in module.roots
    return node.func.attr if is_method and isinstance(node.func, ast.Attribute) else ""


def _operand(module: Module, call: ast.Call) -> ast.expr | None:
    name = module.qualified(call.func) or ""
    if name.startswith("torch."):
        return call.args[0] if call.args else None
    if isinstance(call.func, ast.Attribute) and key_of(call.func) != "math":
        return call.func.value if not call.args else None
    return None


def _is_sum_of_squares(call: ast.Call) -> bool:
    text = ast.unparse(call)
    is_sum = text.endswith((".sum()", ".mean()")) or ".sum(" in text or text.startswith("torch.sum")
    return is_sum and ("** 2" in text or "pow(2)" in text or "square(" in text) and "+ " not in text


_LOSS = """
import torch
import torch.nn.functional as F

def {name}(output, target):
    p = F.softmax(output, dim=1)
    return -({expression}).mean()
"""


def _loss(expression: str, name: str = "my_loss") -> Run:
    return make_run(sources={"loss.py": _LOSS.format(expression=expression, name=name)})


FIRES = {
    "log of a softmax": _loss("target * torch.log(p)"),
    "log of a sigmoid": _loss("target * torch.sigmoid(output).log()"),
    "a division by a norm": _loss("output / output.norm(dim=1, keepdim=True)"),
    "a root": _loss("torch.sqrt(((output - target) ** 2).sum(1))"),
}

SILENT = {
    "log-softmax": _loss("target * F.log_softmax(output, dim=1)"),
    "near miss: with an epsilon": _loss("target * torch.log(p + 1e-8)"),
    "near miss: clamped": _loss("torch.acos((output * target).clamp(-0.999, 0.999))"),
    "near miss: no loss": _loss("target * torch.log(p)", "entropy_metric"),
}
