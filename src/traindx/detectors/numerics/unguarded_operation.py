"""A loss holds an operation that breaks at the edge of its domain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.inputs import holds, values_from_inputs
from traindx.source.loaders import resolve
from traindx.source.loops import training_loops
from traindx.source.module import Function, Module, key_of, literal
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

PROBABILITIES = frozenset({"softmax", "sigmoid"})
NORMS = frozenset({"norm", "vector_norm"})
SQUARE = re.compile(r"\*\* ?2(?:\.0)?\b|pow\(.*\b2(?:\.0)?\)|square\(")
SMALL = 0.01  # what is added below this keeps an argument off zero


@detector(needs=("source",), suggests=("unstable-operation",))
def check(run: Run) -> Iterator[Finding]:
    """A loss takes the logarithm of a probability, divides by a norm, or takes a root, unguarded.

    ## What it detects
    In functions and classes named for a loss: the logarithm of a softmax or sigmoid, or of what is
    mixed from one, a division by a norm, the square root of a sum of squares, or an arc cosine,
    with nothing that keeps the argument away from the edge. In any module: the root of `1 - x²`.
    In a training loop: the exponential of a loss, as what is minimised.

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
            if _runs_no_backward(function):
                continue
            is_loss = "loss" in name.lower()
            edges = _edges(project, module, function) if is_loss else iter(())
            roots = _half_circles(module, function) if is_loss or name.endswith(".forward") else ()
            for node, what, better in (*edges, *roots):
                yield _finding(module, node, what, better)
    for act in (a for loop in training_loops(project) for a in loop.does(Do.BACKWARD)):
        for node in _exponentials(project, act):
            says = "the exponential of a loss"
            yield _finding(act.module, node, says, "one sample that is far off makes it infinite")


def _finding(module: Module, node: ast.AST, what: str, better: str) -> Finding:
    return Finding(
        claim=f"The loss holds an operation that can break: {what}",
        strength=Strength.MODERATE,
        evidence=(module.cite(node, f"{what}; {better}"),),
        suggests={"unstable-operation": Strength.MODERATE},
        location=module.location(node),
    )


def _half_circles(module: Module, function: Function) -> Iterator[tuple[ast.AST, str, str]]:
    """`torch.sqrt(1 - x ** 2)`: the sine of an angle from its cosine, unguarded."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _called(module, node) == "sqrt":
            given = _operand(module, node)
            is_rest = isinstance(given, ast.BinOp) and isinstance(given.op, ast.Sub)
            if (
                not is_rest
                or not isinstance(given, ast.BinOp)
                or literal(given.left) not in (1, 1.0)
            ):
                continue
            if SQUARE.search(ast.unparse(given.right)):
                yield node, "the root of 1 - x²", "its gradient is infinite at ±1; clamp inside"


def _exponentials(project: Project, act: Act) -> Iterator[ast.Call]:
    """The exponential of a loss function's value, where it is what `backward` is called on."""
    key = None if act.subject is None else key_of(act.subject)
    at: ast.AST = act.function or act.module.tree
    for value in project.lookup(act.module, at, key) if key else ():
        if not isinstance(value, ast.Call) or _called(act.module, value) != "exp":
            continue
        inside = [n for n in ast.walk(value) if isinstance(n, ast.Call) and n is not value]
        is_guarded = any(_called(act.module, n) in ("clamp", "clip", "min") for n in inside)
        kinds = {value_of(project, act.module, at, n.func).kind for n in inside}
        if Kind.LOSS in kinds and not is_guarded:
            yield value


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
        elif last == "log" and _is_mixed(project, module, function, made):
            yield (
                node,
                "the logarithm of a probability",
                "it is −∞ once the model is sure and wrong",
            )
        elif last == "sqrt" and isinstance(made, ast.Call) and _is_sum_of_squares(made):
            yield node, "the root of a sum of squares", "its gradient is infinite at 0"
        elif last in ("acos", "arccos") and inner not in ("clamp", "clip") and not _is_bound(made):
            yield node, "an arc cosine", "its gradient is infinite at ±1; clamp before"


def _is_mixed(
    project: Project, module: Module, function: Function, node: ast.expr | None, depth: int = 5
) -> bool:
    """Tell whether a value is made of probabilities by nothing but products, sums and 1 - p.

    A small number that is added is a guard, and so is any call.
    """
    if depth == 0 or node is None:
        return False
    if isinstance(node, ast.Call):
        return _called(module, node) in PROBABILITIES
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        sides = (node.left, node.right)
        if isinstance(node.op, ast.Add) and any(_is_small(s) for s in sides):
            return False
        return any(_is_mixed(project, module, function, s, depth - 1) for s in sides)
    known = project.bindings(function).get(key_of(node) or "", [])
    return len(known) == 1 and _is_mixed(project, module, function, known[0], depth - 1)


def _is_small(node: ast.expr) -> bool:
    """An epsilon, by its value or by its name."""
    value = literal(node)
    name = (key_of(node) or "").lower()
    is_number = isinstance(value, (int, float)) and value < SMALL
    return is_number or "eps" in name or "smooth" in name or "tiny" in name


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


_MARGIN = """
import torch
from torch import nn
import torch.nn.functional as F

class Margin(nn.Module):
    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        return {expression}
"""
_MINIMISED = """
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()
for data, target in train_loader:
    optimizer.zero_grad()
    loss = {expression}
    loss.backward()
    optimizer.step()
"""


def _margin(expression: str) -> Run:
    return make_run(sources={"margin.py": _MARGIN.format(expression=expression)})


def _minimised(expression: str) -> Run:
    return make_run(sources={"train.py": _MINIMISED.format(expression=expression)})


FIRES = {
    "log of a mixed probability": _loss("torch.log(p * target + (1 - p) * (1 - target))"),
    "the sine of an angle": _margin("torch.sqrt(1.0 - torch.pow(cosine, 2))"),
    "the exponential of a loss": _minimised("torch.exp(criterion(model(data), target) / 2)"),
    "log of a softmax": _loss("target * torch.log(p)"),
    "log of a sigmoid": _loss("target * torch.sigmoid(output).log()"),
    "a division by a norm": _loss("output / output.norm(dim=1, keepdim=True)"),
    "a root": _loss("torch.sqrt(((output - target) ** 2).sum(1))"),
}

SILENT = {
    "near miss: a mixed probability and an epsilon": _loss(
        "torch.log(p * target + (1 - p) * (1 - target) + 1e-7)"
    ),
    "near miss: a clamped sine": _margin("torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(1e-6, 1))"),
    "near miss: the perplexity is only shown": _minimised(
        "criterion(model(data), target); shown = torch.exp(loss)"
    ),
    "log-softmax": _loss("target * F.log_softmax(output, dim=1)"),
    "near miss: with an epsilon": _loss("target * torch.log(p + 1e-8)"),
    "near miss: clamped": _loss("torch.acos((output * target).clamp(-0.999, 0.999))"),
    "near miss: no loss": _loss("target * torch.log(p)", "entropy_metric"),
}
