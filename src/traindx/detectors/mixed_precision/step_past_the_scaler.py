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
from traindx.source.module import argument, key_of, literal
from traindx.source.patches import diff, replacing
from traindx.source.project import Project
from traindx.source.values import Kind, value_of


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
    alone. So is a `scale` of something else than torch's gradient scaler (a weight that ramps a
    loss up), a scaler that is switched off, and an optimizer that is given the scaler.
    """
    project = project_of(run)
    for loop in training_loops(project):
        scaled = next((a for a in loop.does(Do.BACKWARD) if _is_scaled(project, a)), None)
        step = loop.first(Do.STEP)
        if scaled is None or step is None or loop.does(Do.SCALER_STEP, Do.UNSCALE):
            continue
        after = loop.acts.index(step) > loop.acts.index(scaled)
        places = [p for p in (loop.node, scaled.function, step.function) if p is not None]
        if not after or step.loops != scaled.loops or any(map(_divides_itself, places)):
            continue
        scaler = _scaler(scaled)
        name = "" if scaler is None else key_of(scaler) or ""
        if _is_given(project, step, name):
            continue
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


def _scaler(backward: Act) -> ast.expr | None:
    subject = backward.subject
    func = subject.func if isinstance(subject, ast.Call) else None
    is_scaled = isinstance(func, ast.Attribute) and func.attr == "scale"
    return func.value if is_scaled and isinstance(func, ast.Attribute) else None


def _is_scaled(project: Project, backward: Act) -> bool:
    """Tell whether a gradient scaler of torch, or one handed over under such a name, scales."""
    scaler = _scaler(backward)
    if scaler is None:
        return False
    at: ast.AST = backward.function or backward.module.tree
    made = [ast.unparse(v) for v in project.lookup(backward.module, at, key_of(scaler) or "")]
    if made:
        return any("GradScaler" in m for m in made) and not any("enabled=False" in m for m in made)
    value = value_of(project, backward.module, at, scaler)
    is_off = value.call is not None and literal(argument(value.call, "enabled")) is False
    return value.kind is Kind.SCALER and not is_off


def _is_given(project: Project, step: Act, scaler: str) -> bool:
    """Tell whether what steps was made with the scaler, and may divide by its scale."""
    at: ast.AST = step.function or step.module.tree
    made = project.lookup(step.module, at, step.target)
    return any(key_of(n) == scaler for v in made for n in ast.walk(v))


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
scaler = {scaler}
for data, target in loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    {backward}
    {step}
"""


def _loop(backward: str, step: str, scaler: str = 'torch.amp.GradScaler("cuda")') -> Run:
    text = _LOOP.format(backward=backward, step=step, scaler=scaler)
    return make_run(sources={"train.py": text})


_SCALED = "scaler.scale(loss).backward()"

FIRES = {
    "plain step": _loop(_SCALED, "optimizer.step()"),
    "made on a condition": _loop(_SCALED, "optimizer.step()", "GradScaler() if amp else None"),
}

SILENT = {
    "scaler steps": _loop(_SCALED, "scaler.step(optimizer); scaler.update()"),
    "no scaling": _loop("loss.backward()", "optimizer.step()"),
    "near miss: a weight that ramps the loss up": _loop(
        "ramp.scale(loss).backward()", "optimizer.step()"
    ),
    "near miss: a scaler of its own kind": _loop(_SCALED, "optimizer.step()", "TermScaler(1000)"),
    "near miss: switched off": _loop(_SCALED, "optimizer.step()", "GradScaler(enabled=False)"),
    "near miss: two paths": _loop(
        _SCALED,
        "if amp:\n        scaler.step(optimizer)\n        scaler.update()\n"
        "    else:\n        optimizer.step()",
    ),
}
