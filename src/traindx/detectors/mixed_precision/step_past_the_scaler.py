"""The loss is scaled, and the optimizer steps on scaled gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import training_loops
from traindx.source.module import key_of
from traindx.source.patches import diff, replacing


@detector(needs=("source",), suggests=("scaler-bypassed",))
def check(run: Run) -> Iterator[Finding]:
    """The loss is scaled and the optimizer is stepped without the scaler.

    ## What it detects
    A training loop with `scaler.scale(loss).backward()` and a plain `optimizer.step()`, in which
    nothing calls `scaler.step` or `unscale_`.

    ## Why it matters
    The gradients are up to 65536 times too large. SGD diverges at once; Adam hides it until an
    overflow puts Inf into the weights, which the scaler would have skipped.

    ## What to do
    Replace `optimizer.step()` by `scaler.step(optimizer)` and `scaler.update()`.

    ## When it is wrong
    A loop that divides the gradients by the scale itself reads `.grad` or the scale; it is left
    alone.
    """
    for loop in training_loops(project_of(run)):
        scaled = next((a for a in loop.does(Do.BACKWARD) if _scaler(a)), None)
        step = loop.first(Do.STEP)
        if scaled is None or step is None or loop.does(Do.SCALER_STEP, Do.UNSCALE):
            continue
        after = loop.acts.index(step) > loop.acts.index(scaled)
        if not after or step.loops != scaled.loops or _divides_itself(loop.node):
            continue
        name = _scaler(scaled)
        yield Finding(
            claim=f"The loss is scaled by `{name}` and `{step.target}.step()` bypasses it",
            strength=Strength.STRONG,
            evidence=(
                scaled.module.cite(scaled.node, "gradients are scaled here"),
                step.module.cite(step.node, "and applied as they are here"),
            ),
            shows="scaler-bypassed",
            is_symptom=True,
            location=step.location,
            patch=_patch(step, name, has_update=bool(loop.does(Do.SCALER_UPDATE))),
        )


def _scaler(backward: Act) -> str:
    subject = backward.subject
    func = subject.func if isinstance(subject, ast.Call) else None
    is_scaled = isinstance(func, ast.Attribute) and func.attr == "scale"
    return (key_of(func.value) or "") if is_scaled and isinstance(func, ast.Attribute) else ""


def _divides_itself(loop: ast.AST) -> bool:
    nodes = (n for n in ast.walk(loop) if isinstance(n, ast.Attribute))
    return any(n.attr in ("grad", "get_scale", "unscale_") for n in nodes)


def _patch(step: Act, scaler: str, *, has_update: bool) -> str | None:
    statement = step.statement
    if not isinstance(statement, ast.Expr):
        return None
    indent = " " * statement.col_offset
    update = "" if has_update else f"\n{indent}{scaler}.update()"
    edit = replacing(statement, f"{scaler}.step({step.target}){update}")
    return diff(step.module, edit)


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for data, target in loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    {backward}
    {step}
"""


def _loop(backward: str, step: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(backward=backward, step=step)})


_SCALED = "scaler.scale(loss).backward()"

FIRES = {"plain step": _loop(_SCALED, "optimizer.step()")}

SILENT = {
    "scaler steps": _loop(_SCALED, "scaler.step(optimizer); scaler.update()"),
    "no scaling": _loop("loss.backward()", "optimizer.step()"),
    "near miss: two paths": _loop(
        _SCALED,
        "if amp:\n        scaler.step(optimizer)\n        scaler.update()\n"
        "    else:\n        optimizer.step()",
    ),
}
