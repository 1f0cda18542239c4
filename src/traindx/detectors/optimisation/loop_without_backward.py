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
from traindx.source.module import key_of
from traindx.source.patches import diff, inserting_before
from traindx.source.values import Kind

CLIPS = ("clip_grad_norm_", "clip_grad_value_")
GRADIENTS = re.compile(r"backward|autograd|\bgrad\(|\.grad\b|deepspeed|[Tt]rainer|[Ff]abric")


@detector(needs=("source",), suggests=("missing-backward",))
def check(run: Run) -> Iterator[Finding]:
    """A training loop computes a loss and steps its optimizer, with no backward pass.

    ## What it detects
    A loop with a loss and the step of an optimizer in which nothing computes gradients: no
    `backward`, no `autograd.grad`, no closure, no call that is handed the loss. An optimizer that
    is handed in from out of sight counts where nothing in the code computes gradients.

    ## Why it matters
    The step finds no gradients and does nothing. The loss only shakes with the batches.

    ## What to do
    Call `loss.backward()` before the step.

    ## When it is wrong
    A framework call that takes the loss and runs backward inside is out of sight; such loops are
    left alone.
    """
    project = project_of(run)
    is_absent = not any(GRADIENTS.search(m.text) for m in project.modules)
    for loop in training_loops(project):
        if loop.does(Do.BACKWARD, Do.GRAD, Do.MANUAL_UPDATE, Do.SCALER_STEP):
            continue
        step = _known_step(loop, is_absent)
        loss = _named_loss(loop)
        if step is None or loss is None or _is_handed_on(loop, loss[1]):
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
    """The loss and the name it is kept under, outside of evaluation."""
    for act in loop.does(Do.LOSS):
        statement = act.statement
        evaluates = any("no_grad" in c or "inference_mode" in c for c in act.contexts)
        if evaluates or not isinstance(statement, ast.Assign):
            continue
        target = statement.targets[0]
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        name = key_of(parts[0])  # `loss_box, loss_class = criterion(…)`
        if name is not None:
            return act, name
    return None


def _is_handed_on(loop: TrainingLoop, loss: str) -> bool:
    harmless = {"print", "float", "str", "format", "append", "log", "item", "isnan", "isfinite"}
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Call) and any(key_of(a) == loss for a in node.args):
            name = (key_of(node.func) or "").rsplit(".", 1)[-1]
            if name not in harmless:
                return True
    return False


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
    "a loss of two parts": make_run(
        sources={"train.py": _PARTS.format(more="    loss = loss_box + loss_class")}
    ),
    "the loss is a part of a sum": _loop("total = loss + 0.1 * penalty(model)"),
}

SILENT = {
    "near miss: from out of sight, with backward": _handed("loss.backward()"),
    "near miss: from out of sight, handed on": _handed("finish(loss)"),
    "a right loop": _loop("loss.backward()"),
    "near miss: a framework runs it": _loop("engine.run(loss)"),
    "near miss: gradients by autograd.grad": _loop(
        "grads = torch.autograd.grad(loss, list(model.parameters()))"
    ),
}
