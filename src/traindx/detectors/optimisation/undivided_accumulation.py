"""Gradients are accumulated over batches and the loss is not divided by their number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.patches import diff, replacing
from traindx.source.project import Project
from traindx.source.values import Kind

STEPS = (Do.STEP, Do.SCALER_STEP)
SHOWS = frozenset({"print", "range", "tqdm", "len", "str"})


@detector(needs=("source",), suggests=("gradient-accumulation-unscaled",))
def check(run: Run) -> Iterator[Finding]:
    """Gradients of several batches are summed and the loss is never divided by their number.

    ## What it detects
    A loop that calls `backward` for every batch and steps and clears only every n batches, where
    the loss is one of torch's own, averaged over the batch, and reaches `backward` unchanged.

    ## Why it matters
    The gradients of n batches add up, so the step is n times that of one large batch: with SGD the
    learning rate is n times what was meant. Adam hides it, until clipping or weight decay meet it.

    ## What to do
    Divide: `(loss / n).backward()`.

    ## When it is wrong
    A learning rate that was chosen for the sum is right as it is; a loss that is summed on purpose,
    and frameworks that divide themselves, are left alone.
    """
    project = project_of(run)
    for loop in training_loops(project):
        step = _periodic_step(loop)
        backward = loop.first(Do.BACKWARD)
        if step is None or backward is None or not _is_summed(project, loop, backward, step):
            continue
        count = _count(step)
        kind = (step.value.made_by or "").rsplit(".", 1)[-1]
        is_sgd = kind == "SGD"
        cause = "gradient-accumulation-unscaled"
        yield Finding(
            claim=f"Gradients of {ast.unparse(count)} batches add up and the loss is not divided",
            strength=Strength.STRONG if is_sgd else Strength.MODERATE,
            evidence=(
                backward.module.cite(backward.node, "backward on the whole loss, every batch"),
                step.module.cite(step.node, f"the step, every {ast.unparse(count)} batches"),
            ),
            location=backward.location,
            patch=_patch(backward, count),
            suggests={} if is_sgd else {cause: Strength.MODERATE},
            shows=cause if is_sgd else None,
            is_symptom=is_sgd,
        )


def _periodic_step(loop: TrainingLoop) -> Act | None:
    """A step that runs every n batches, and no other step."""
    steps = loop.does(*STEPS)
    if not steps or any(_count_in(s) is None for s in steps):
        return None
    cleared = loop.does(Do.ZERO_GRAD)
    return steps[0] if cleared and all(c.guards == steps[0].guards for c in cleared) else None


def _count_in(act: Act) -> ast.expr | None:
    """The n of the nearest guard `… % n == 0`."""
    for test in reversed(act.guards):
        for node in ast.walk(test):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                return node.right
    return None


def _count(act: Act) -> ast.expr:
    found = _count_in(act)
    assert found is not None
    return found


def _is_summed(project: Project, loop: TrainingLoop, backward: Act, step: Act) -> bool:
    if backward.guards or backward.loops != step.loops or loop.does(Do.GRAD, Do.MANUAL_UPDATE):
        return False
    if backward.value.kind in (Kind.ACCELERATOR, Kind.MODEL) or literal(_count(step)) == 1:
        return False
    if any(c.endswith("accumulate") for c in backward.contexts) or _touches_gradients(loop):
        return False
    if _is_weighted(backward) or _is_reckoned_with(loop, _count(step)):
        return False
    name = _plain_name(backward)
    losses = [a for a in loop.does(Do.LOSS) if name in _targets(a)]
    if not name or len(losses) != 1 or _is_divided(backward, losses[0], name):
        return False
    return _is_mean(losses[0]) and not _is_rate_scaled(project, step)


def _is_weighted(backward: Act) -> bool:
    """`loss.backward(gradient=…)`: the gradient starts from another number than 1."""
    call = backward.node
    plain = ("retain_graph", "create_graph", "inputs")
    return isinstance(call, ast.Call) and (
        any(a is not backward.subject for a in call.args)
        or any(k.arg not in plain for k in call.keywords)
    )


def _is_reckoned_with(loop: TrainingLoop, count: ast.expr) -> bool:
    """Tell whether the number of batches divides something, or is handed on to what may."""
    key = key_of(count)
    for node in ast.walk(loop.node) if key is not None else ():
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
            parts = [node.left, node.right]
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Div, ast.Mult)):
            parts = [node.value]
        elif isinstance(node, ast.Call) and key_of(node.func) not in SHOWS:
            parts = [*node.args, *(k.value for k in node.keywords)]
        if any(key_of(p) == key for p in parts):
            return True
    return False


def _plain_name(backward: Act) -> str:
    """The loss under its own name, also inside `scaler.scale(loss)`."""
    subject = backward.subject
    if isinstance(subject, ast.Call) and len(subject.args) == 1:
        is_scaled = isinstance(subject.func, ast.Attribute) and subject.func.attr == "scale"
        subject = subject.args[0] if is_scaled else None
    return subject.id if isinstance(subject, ast.Name) else ""


def _targets(act: Act) -> list[str]:
    statement = act.statement
    if not isinstance(statement, ast.Assign) or statement.value is not act.node:
        return []
    return [key_of(t) or "" for t in statement.targets]


def _is_divided(backward: Act, loss: Act, name: str) -> bool:
    """Tell whether the loss is changed, by whatever means, between its making and `backward`."""
    around = backward.module.enclosing(backward.node)
    loops = [n for n in around if n in backward.loops]
    scope: ast.AST = loops[0] if loops else backward.function or backward.loops[0]
    return any(_changes(n, loss, name) for n in ast.walk(scope))


def _changes(node: ast.AST, loss: Act, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return key_of(node.target) == name
    if isinstance(node, ast.Assign):
        is_other = node.value is not loss.node and not isinstance(node.value, ast.Constant)
        return is_other and name in [key_of(t) for t in node.targets]
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or key_of(func.value) != name:
        return False
    return func.attr.endswith("_") or func.attr == "register_hook"


def _is_mean(loss: Act) -> bool:
    """Tell whether it is a loss of torch's own with its default, the mean."""
    made = loss.value.call or (loss.node if isinstance(loss.node, ast.Call) else None)
    name = loss.value.made_by or loss.target
    is_torch = name.startswith("torch.")
    reduction = None if made is None else literal(argument(made, "reduction"))
    return is_torch and made is not None and reduction in (None, "mean")


def _is_rate_scaled(project: Project, step: Act) -> bool:
    made = step.value.call
    rate = None if made is None else argument(made, "lr", 1)
    key = rate.id if isinstance(rate, ast.Name) else None
    at: ast.AST = step.function or step.module.tree
    known = [] if key is None else project.lookup(step.module, at, key)
    return any(isinstance(r, ast.BinOp) for r in (rate, *known))


def _touches_gradients(loop: TrainingLoop) -> bool:
    nodes = (n for n in ast.walk(loop.node) if isinstance(n, ast.Attribute))
    return any(n.attr == "grad" for n in nodes)


def _patch(backward: Act, count: ast.expr) -> str | None:
    module: Module = backward.module
    subject = backward.subject
    if isinstance(subject, ast.Call):
        inner = subject.args[0]
        return diff(module, replacing(inner, f"{module.source(inner)} / {module.source(count)}"))
    if subject is None:
        return None
    return diff(module, replacing(subject, f"({module.source(subject)} / {module.source(count)})"))


_LOOP = """
import torch
from torch import nn

criterion = nn.CrossEntropyLoss({reduction})
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.1)
for i, (data, target) in enumerate(loader):
    loss = criterion(model(data), target)
    {divide}
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


def _loop(divide: str = "pass", reduction: str = "", optimizer: str = "SGD") -> Run:
    text = _LOOP.format(divide=divide, reduction=reduction, optimizer=optimizer)
    return make_run(sources={"train.py": text})


FIRES = {"never divided": _loop(), "with Adam, a remark": _loop(optimizer="AdamW")}

SILENT = {
    "divided": _loop("loss = loss / accumulation_steps"),
    "near miss: divided in place": _loop("loss /= accumulation_steps"),
    "near miss: divided by a method": _loop("loss = loss.div(4)"),
    "near miss: divided by a method in place": _loop("loss.div_(4)"),
    "near miss: divided by a function": _loop("loss = torch.div(loss, accumulation_steps)"),
    "near miss: the gradient starts from a fraction": make_run(
        sources={
            "train.py": _LOOP.format(divide="pass", reduction="", optimizer="SGD").replace(
                "backward()", "backward(gradient=torch.tensor(0.25))"
            )
        }
    ),
    "near miss: the gradients are divided out of sight": _loop(
        "average(model, accumulation_steps)"
    ),
    "near miss: summed on purpose": _loop(reduction='reduction="sum"'),
}
