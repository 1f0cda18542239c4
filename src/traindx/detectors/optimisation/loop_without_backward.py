"""A training loop that steps without a backward pass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Function, key_of
from traindx.source.patches import diff, inserting_before
from traindx.source.values import Kind

# calls that only look at the loss, or make a sum of its parts
HARMLESS = frozenset(
    {"print", "float", "str", "format", "append", "log", "item", "isnan", "isfinite", "isinf",
     "set_postfix", "set_description", "info", "debug", "warning", "write", "sum", "mean", "stack",
     "cat", "add", "div", "mul", "len", "round", "abs", "extend", "items", "values",
     "enumerate", "zip", "list", "tuple", "dict", "map", "reversed", "sorted", "max", "min"}
)  # fmt: skip
READS = frozenset({"item", "detach", "tolist", "numpy", "float"})  # what comes out trains nothing
CLIPS = ("clip_grad_norm_", "clip_grad_value_")
GRADIENTS = re.compile(r"backward|autograd|\bgrad\(|\.grad\b|deepspeed|[Tt]rainer|[Ff]abric")


@detector(needs=("source",), suggests=("missing-backward",))
def check(run: Run) -> Iterator[Finding]:
    """A training loop computes a loss and steps its optimizer, with no backward pass.

    ## What it detects
    A loop with a loss and the step of an optimizer in which nothing computes gradients: no
    `backward`, no `autograd.grad`, no closure, nothing that is written to `.grad`, no call that is
    handed the loss or what is made of it. An optimizer that is handed in from out of sight counts
    where nothing in the code computes gradients.

    ## Why it matters
    The step finds no gradients and does nothing. The loss only shakes with the batches.

    ## What to do
    Call `loss.backward()` before the step.

    ## When it is wrong
    A framework call that takes the loss and runs backward inside is out of sight; such loops are
    left alone, and so are those that estimate gradients without backward and write them down.
    """
    project = project_of(run)
    is_absent = not any(GRADIENTS.search(m.text) for m in project.modules)
    for loop in training_loops(project):
        if loop.does(Do.BACKWARD, Do.GRAD, Do.MANUAL_UPDATE, Do.SCALER_STEP):
            continue
        step = _known_step(loop, is_absent)
        loss = _named_loss(loop)
        if step is None or loss is None or _writes_gradients(loop) or _is_handed_on(loop):
            continue
        act, name = loss
        is_involved = _is_involved(loop, step, name)
        called = "backward()" if is_involved else f"{name}.backward()"
        yield Finding(
            claim=f"The training loop steps the optimizer but never calls {called}",
            strength=Strength.STRONG,
            evidence=(
                cite_source(act.module.path, act.line, "the loss is computed here"),
                cite_source(step.module.path, step.line, "and the optimizer steps here"),
            ),
            shows="missing-backward",
            is_symptom=True,
            location=step.location,
            patch=None if is_involved else _patch(step, name),
        )


def _known_step(loop: TrainingLoop, is_absent: bool) -> Act | None:
    """The step of an optimizer; one out of sight counts where nothing computes gradients."""
    for act in loop.does(Do.STEP):
        has_closure = isinstance(act.node, ast.Call) and bool(act.node.args or act.node.keywords)
        is_own = any("optim" in name.lower() for name in act.module.classes)
        is_known = act.value.is_certain or (
            is_absent and not is_own and "torch" in act.module.roots
        )
        if act.value.kind is Kind.OPTIMIZER and is_known and not has_closure:
            return act
    return None


def _named_loss(loop: TrainingLoop) -> tuple[Act, str] | None:
    """The first loss and the name it is kept under, outside of evaluation."""
    return next(_named_losses(loop), None)


def _named_losses(loop: TrainingLoop) -> Iterator[tuple[Act, str]]:
    for act in loop.does(Do.LOSS):
        statement = act.statement
        evaluates = any("no_grad" in c or "inference_mode" in c for c in act.contexts)
        if evaluates or not isinstance(statement, ast.Assign):
            continue
        target = statement.targets[0]
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        name = key_of(parts[0])  # `loss_box, loss_class = criterion(…)`
        if name is not None:
            yield act, name


def _texts(loop: TrainingLoop) -> list[ast.AST]:
    """The loop and the project's own functions that it runs."""
    called = {a.function for a in loop.acts if a.function is not loop.function}
    return [loop.node, *(f for f in called if f is not None)]


def _writes_gradients(loop: TrainingLoop) -> bool:
    """Tell whether gradients are written by hand, as estimates without backward are."""
    for node in (n for text in _texts(loop) for n in ast.walk(text)):
        if not isinstance(node, ast.Attribute):
            continue
        if node.attr == "grad" and isinstance(node.ctx, ast.Store):
            return True
        is_gradient = isinstance(node.value, ast.Attribute) and node.value.attr == "grad"
        if is_gradient and node.attr.endswith("_") and node.attr != "zero_":
            return True
    return False


def _is_handed_on(loop: TrainingLoop) -> bool:
    """Tell whether a call out of sight may run backward: it takes a loss or what is made of it."""
    texts = _texts(loop)
    losses = {name for _, name in _named_losses(loop)}
    makers = {f.name for f in texts if isinstance(f, Function) and _returns_one(f, losses)}
    names = _made_of(losses, makers, texts)
    followed = {f.name for f in texts if isinstance(f, Function)}
    for node in (n for text in texts for n in ast.walk(text)):
        if isinstance(node, ast.Call):
            called = _called(node)
            given = [*node.args, *(k.value for k in node.keywords)]
            is_known = called in HARMLESS or called in READS or called in followed
            if not is_known and any(_carries(g, names, makers) for g in given):
                return True
    return False


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _returns_one(function: Function, losses: set[str]) -> bool:
    returned = (n.value for n in ast.walk(function) if isinstance(n, ast.Return))
    return any(value is not None and _carries(value, losses, set()) for value in returned)


def _made_of(names: set[str], makers: set[str], texts: list[ast.AST]) -> set[str]:
    """Return the names of losses and of all that is computed from them, sums above all."""
    assigned = [
        (node.targets if isinstance(node, ast.Assign) else [node.target], node.value)
        for text in texts
        for node in ast.walk(text)
        if isinstance(node, (ast.Assign, ast.AugAssign))
    ]
    found = set(names)
    for _ in assigned:
        grown = found | {
            key
            for targets, value in assigned
            if _carries(value, found, makers)
            for target in targets
            if (key := key_of(target))
        }
        if grown == found:
            break
        found = grown
    return found


def _carries(node: ast.AST, names: set[str], makers: set[str]) -> bool:
    """Tell whether a value holds a loss with its graph, or comes from what computes one."""
    if key_of(node) in names:
        return True
    if isinstance(node, ast.JoinedStr):
        return False
    if isinstance(node, ast.Call):
        called = _called(node)
        if called in makers:
            return True
        if called in READS:
            return False
    return any(_carries(n, names, makers) for n in ast.iter_child_nodes(node))


def _is_involved(loop: TrainingLoop, step: Act, loss: str) -> bool:
    """Tell whether the line is more than one before the step: a part of a sum, or clipping."""
    scope = step.module.function_of(step.node) or loop.node  # it may be called from the loop
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(CLIPS):
            return True
        is_part = isinstance(node, ast.BinOp) and loss in map(key_of, (node.left, node.right))
        if is_part or (isinstance(node, ast.AugAssign) and key_of(node.value) == loss):
            return True
    return False


def _patch(step: Act, loss: str) -> str | None:
    if step.statement is None:
        return None
    edit = inserting_before(step.module, step.statement, f"{loss}.backward()")
    return diff(step.module, edit)


_LOOP = """
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
{more}
    optimizer.step()
"""


def _loop(more: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(more=f"    {more}")})


_PARTS = _LOOP.replace("loss = criterion", "loss_box, loss_class = criterion")

_HANDED = """
import torch

def train(model, optimizer, criterion, loader):
    for data, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        {more}
        optimizer.step()
"""


def _handed(more: str) -> Run:
    return make_run(sources={"train.py": _HANDED.format(more=more)})


FIRES = {
    "an optimizer from out of sight": _handed("print(loss.item())"),
    "no backward": _loop("print(loss.item())"),
    "no backward, and a meter": _loop("value = loss.item()\n    meter.update(value, len(data))"),
    "a loss of two parts": make_run(
        sources={"train.py": _PARTS.format(more="    loss = loss_box + loss_class")}
    ),
    "the loss is a part of a sum": _loop("total = loss + 0.1 * penalty(model)"),
}

_ESTIMATED = """for p, e in zip(model.parameters(), directions):
        p.grad = (loss - criterion(model(data + e), target)) * e"""

SILENT = {
    "near miss: gradients estimated without backward": _loop(_ESTIMATED),
    "near miss: a sum that is handed on": _loop(
        "total = loss + 0.1 * penalty(model)\n    backprop(total)"
    ),
    "near miss: handed on by keyword": _loop("engine.run(objective=loss)"),
    "near miss: from out of sight, with backward": _handed("loss.backward()"),
    "near miss: from out of sight, handed on": _handed("finish(loss)"),
    "a right loop": _loop("loss.backward()"),
    "near miss: a framework runs it": _loop("engine.run(loss)"),
    "near miss: gradients by autograd.grad": _loop(
        "grads = torch.autograd.grad(loss, list(model.parameters()))"
    ),
}
