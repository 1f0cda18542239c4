"""Gradients are clipped while they still carry the loss scale."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import argument, key_of, literal
from traindx.source.patches import diff, inserting_before
from traindx.source.project import Project


@detector(needs=("source",), suggests=("clip-without-unscale",))
def check(run: Run) -> Iterator[Finding]:
    """Gradients are clipped before the scaler has unscaled them.

    ## What it detects
    A training loop that scales its loss with a gradient scaler, clips with one of torch's clipping
    functions and steps through the scaler, without `unscale_` before the clip.

    ## Why it matters
    The gradients are still multiplied by the loss scale (65536 at first), so nearly every step is
    clipped to a norm that is thousands of times too small: training crawls.

    ## What to do
    Call `scaler.unscale_(optimizer)` between `backward` and the clipping.

    ## When it is wrong
    A limit that is multiplied by the scale is right without unscaling; such a loop asks the scaler
    for its scale and is left alone. So is a `scale` or a scaler that is not torch's, or is off.
    """
    project = project_of(run)
    for loop in training_loops(project):
        clip, step = _scaled_clip(loop), loop.first(Do.SCALER_STEP)
        if clip is None or step is None or not isinstance(step.node, ast.Call):
            continue
        if not _is_at_work(project, step):
            continue
        given = step.node.args[0] if step.node.args else None
        optimizer = step.module.source(given) if given is not None else "optimizer"
        call = f"{step.target}.unscale_({optimizer})"
        statement = clip.statement
        patch = None
        if statement is not None and clip.function is step.function:
            patch = diff(clip.module, inserting_before(clip.module, statement, call))
        is_felt = _is_scaled_up(run)
        yield Finding(
            claim=f"Gradients are clipped before `{call}`, at the scale of the loss scaler",
            strength=Strength.STRONG if is_felt else Strength.MODERATE,
            evidence=(
                clip.module.cite(clip.node, "clipped here, still scaled"),
                step.module.cite(step.node, "unscaled only here"),
            ),
            shows="clip-without-unscale" if is_felt else None,
            suggests={} if is_felt else {"clip-without-unscale": Strength.WEAK},
            is_symptom=is_felt,
            location=clip.location,
            patch=patch,
        )


def _is_scaled_up(run: Run) -> bool:
    """A scale that fell to one and below makes no norm large any more: its fall is the fault."""
    scale = run.get("loss_scale")
    return scale is None or not len(scale.finite()) or float(scale.finite().values.max()) > 1.0


def _scaled_clip(loop: TrainingLoop) -> Act | None:
    """The first clip between a scaled backward and the scaler's step."""
    is_scaled = False
    for act in loop.acts:
        if act.do is Do.BACKWARD:
            is_scaled = _is_scaled(loop, act)
        elif act.do is Do.UNSCALE or _asks_scale(loop):
            return None
        elif act.do is Do.CLIP and is_scaled and act.target.startswith("torch."):
            return act if _steps_later(loop, act) else None
    return None


def _is_scaled(loop: TrainingLoop, backward: Act) -> bool:
    """Tell whether the loss is scaled by what steps, and not by a weight with such a method."""
    subject = backward.subject
    func = subject.func if isinstance(subject, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "scale":
        return False
    steps = loop.does(Do.SCALER_STEP)
    return any(a.target == key_of(func.value) or a.function is not backward.function for a in steps)


def _is_at_work(project: Project, step: Act) -> bool:
    """Tell whether a scaler is torch's, or out of sight, and is not switched off."""
    call = step.value.call
    if call is not None:
        return literal(argument(call, "enabled")) is not False
    at: ast.AST = step.function or step.module.tree
    made = project.lookup(step.module, at, step.target)
    return not made or any("GradScaler" in ast.unparse(v) for v in made)


def _steps_later(loop: TrainingLoop, clip: Act) -> bool:
    return any(a.do is Do.SCALER_STEP for a in loop.acts[loop.acts.index(clip) :])


def _asks_scale(loop: TrainingLoop) -> bool:
    nodes = (n for n in ast.walk(loop.node) if isinstance(n, ast.Attribute))
    return any(n.attr in ("get_scale", "unscale_") for n in nodes)


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for data, target in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(data), target)
    scaler.scale(loss).backward()
    {clip}
    scaler.step(optimizer)
    scaler.update()
"""
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def _loop(clip: str, made: str = 'torch.amp.GradScaler("cuda")') -> Run:
    text = _LOOP.format(clip=clip).replace('torch.amp.GradScaler("cuda")', made)
    return make_run(sources={"train.py": text})


FIRES = {"no unscale_": _loop(_CLIP)}

SILENT = {
    "unscaled first": _loop(f"scaler.unscale_(optimizer)\n    {_CLIP}"),
    "no clipping": _loop("pass"),
    "near miss: a scaler of its own kind": _loop(_CLIP, "TermScaler(1000)"),
    "near miss: switched off": _loop(_CLIP, "torch.amp.GradScaler(enabled=False)"),
    "near miss: a weight scales the loss": make_run(
        sources={
            "train.py": _LOOP.format(clip=_CLIP).replace("scaler.scale(loss)", "ramp.scale(loss)")
        }
    ),
    "near miss: the limit is scaled": _loop(
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale())"
    ),
}
