"""The learning-rate schedule is stepped at the wrong time or pace."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.errors import names_in
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import argument, key_of, literal

STEPS = (Do.STEP, Do.SCALER_STEP)
PER_BATCH = {"OneCycleLR", "CyclicLR"}
EPOCH_WORDS = ("epoch", "epochs")
OTHER_UNITS = ("step", "iter", "batch", "per_")
NEUTRAL = frozenset({"int", "round", "float", "max", "min", "list", "math", "math.ceil"})
STRIDES = ("StepLR", "MultiStepLR")  # of which an equal number may be chance
GAMMAS = {"StepLR": 2, "ExponentialLR": 1}  # by the position of the factor
COUNTS = ("range", "trange")
FEW_BATCHES = 300  # fewer than one epoch of most data; no schedule is meant to end there


@detector(needs=("source",), suggests=("lr-schedule-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """The learning-rate schedule is stepped per batch where it counts epochs, or the reverse.

    ## What it detects
    A scheduler whose length or stride was given in epochs (`T_max=epochs`, `step_size=epochs // 2`,
    `milestones=[0.5 * epochs]`) and that is stepped in the loop over batches; one that falls so
    steeply (StepLR every 7 steps by 0.1, ExponentialLR by 0.9) that stepped for every batch it is
    over within a few hundred batches; one that counts batches by nature (OneCycleLR, CyclicLR) and
    is stepped once per epoch; and one that is stepped for every batch and for every epoch as well.

    ## Why it matters
    Counted in the wrong unit the rate falls to its end within the first epochs, or never moves.

    ## What to do
    Step it in the loop whose unit its length was given in.

    ## When it is wrong
    A variable called `epochs` that really counts steps misleads this; so does a schedule that is
    stepped out of sight.
    """
    for loop in training_loops(project_of(run)):
        for act in loop.does(Do.SCHEDULER_STEP):
            fault = _fault(loop, act)
            if fault is None:
                continue
            made, why = fault
            yield Finding(
                claim=f"The learning-rate schedule is stepped at the wrong pace: {why}",
                strength=Strength.STRONG,
                evidence=(
                    cite_source(act.module.path, act.line, f"{act.target}.step() runs here"),
                    cite_source(act.module.path, made.lineno, "the schedule is made here"),
                ),
                shows="lr-schedule-misuse",
                location=act.location,
            )
            break


def _fault(loop: TrainingLoop, act: Act) -> tuple[ast.Call, str] | None:
    made = act.value.call
    step = loop.first(*STEPS)
    if made is None or step is None or not act.value.is_certain:
        return None
    if act.guards and [ast.dump(g) for g in act.guards] != [ast.dump(g) for g in step.guards]:
        return None
    kind = act.value.made_by.rsplit(".", 1)[-1]
    per_batch = len(act.loops) >= len(step.loops)
    has_batches = len(step.loops) > 1
    length = _length(kind, made)
    if per_batch and has_batches and length is not None and _counts_epochs(loop, kind, length):
        return made, f"{kind} counts {ast.unparse(length)} epochs and is stepped for every batch"
    steps = _steps_to_nothing(kind, made)
    if per_batch and has_batches and steps < FEW_BATCHES and _is_over_batches(act.loops[-1]):
        return made, f"stepped for every batch, {kind} falls a millionfold in {steps:.0f} batches"
    if kind in PER_BATCH and not per_batch:
        return made, f"{kind} counts batches and is stepped once per epoch"
    if _is_stepped_twice(loop, act):
        return made, f"{kind} is stepped for every batch and once more for every epoch"
    return None


def _steps_to_nothing(kind: str, made: ast.Call) -> float:
    """The number of steps after which a schedule has divided the rate by a million."""
    gamma = literal(argument(made, "gamma", GAMMAS[kind])) if kind in GAMMAS else None
    stride = literal(argument(made, "step_size", 1)) if kind == "StepLR" else 1
    if kind == "StepLR" and gamma is None and argument(made, "gamma", 2) is None:
        gamma = 0.1  # torch's default
    is_known = isinstance(gamma, float) and isinstance(stride, int)
    if not is_known or not 0 < gamma < 1:  # type: ignore[operator]
        return math.inf
    return stride * math.log(1e-6) / math.log(gamma)  # type: ignore[operator,arg-type]


def _is_over_batches(node: ast.AST) -> bool:
    """Tell whether a loop goes over data: no count of epochs, folds or the like."""
    if not isinstance(node, ast.For):
        return False
    head = f"{ast.unparse(node.target)} {ast.unparse(node.iter)}".lower()
    is_count = isinstance(node.iter, ast.Call) and key_of(node.iter.func) in COUNTS
    return "epoch" not in head and (not is_count or "batch" in head)


def _is_stepped_twice(loop: TrainingLoop, act: Act) -> bool:
    """Tell whether one schedule is stepped, without an argument, in both of two nested loops."""
    plain = [
        a
        for a in loop.does(Do.SCHEDULER_STEP)
        if a.value.call is act.value.call and not a.guards and _is_bare(a.node)
    ]
    inner = max(plain, key=lambda a: len(a.loops), default=None)
    is_nested = {len(a.loops) for a in plain} == {1, 2} and len(plain) == 2
    return is_nested and inner is not None and _is_over_batches(inner.loops[-1])


def _is_bare(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and not node.args and not node.keywords


def _length(kind: str, made: ast.Call) -> ast.expr | None:
    """The argument that says how long a schedule is, where it has one."""
    if kind == "CosineAnnealingLR":
        return argument(made, "T_max", 1)
    if kind == "StepLR":
        return argument(made, "step_size", 1)
    if kind == "MultiStepLR":
        return argument(made, "milestones", 1)
    if kind == "LinearLR":
        return argument(made, "total_iters", 3)
    if kind == "PolynomialLR":
        return argument(made, "total_iters", 1)
    return None


def _counts_epochs(loop: TrainingLoop, kind: str, length: ast.expr) -> bool:
    """Tell whether a length is made of the number of epochs, or is the bound of the outer loop."""
    keys = names_in(length)
    keys = [k for k in keys if k not in NEUTRAL and not any(o.startswith(f"{k}.") for o in keys)]
    names = [k.rsplit(".", 1)[-1].lower() for k in keys]
    is_named = bool(names) and all(
        any(w in n for w in EPOCH_WORDS) and not any(w in n for w in OTHER_UNITS) for n in names
    )
    bound = _bound(loop.node)
    is_bound = bound is not None and ast.dump(bound) == ast.dump(length)
    return is_named or (is_bound and kind not in STRIDES)


def _bound(node: ast.AST) -> ast.expr | None:
    call = node.iter if isinstance(node, ast.For) else None
    if (
        isinstance(call, ast.Call)
        and key_of(call.func) in {"range", "trange", "tqdm"}
        and call.args
    ):
        return call.args[-1] if len(call.args) < 3 else call.args[1]
    return None


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.{scheduler}
for epoch in range(epochs):
    for data, target in loader:
        optimizer.zero_grad()
        criterion(model(data), target).backward()
        optimizer.step()
{inner}
{outer}
"""
_COSINE = "CosineAnnealingLR(optimizer, T_max=epochs)"
_ONE_CYCLE = "OneCycleLR(optimizer, 0.1, epochs=epochs, steps_per_epoch=len(loader))"


def _loop(scheduler: str, *, inner: str = "", outer: str = "") -> Run:
    inner, outer = inner and f"        {inner}", outer and f"    {outer}"
    text = _LOOP.format(scheduler=scheduler, inner=inner, outer=outer)
    return make_run(sources={"train.py": text})


FIRES = {
    "a steep schedule for every batch": _loop(
        "StepLR(optimizer, step_size=7, gamma=0.1)", inner="scheduler.step()"
    ),
    "for every batch and every epoch": _loop(
        "LambdaLR(optimizer, warm_up)", inner="scheduler.step()", outer="scheduler.step()"
    ),
    "cosine over epochs, per batch": _loop(_COSINE, inner="scheduler.step()"),
    "a stride in epochs, per batch": _loop(
        "StepLR(optimizer, step_size=args.epochs // 2, gamma=0.1)", inner="scheduler.step()"
    ),
    "one cycle, per epoch": _loop(_ONE_CYCLE, outer="scheduler.step()"),
}

SILENT = {
    "near miss: steep, and once per epoch": _loop(
        "StepLR(optimizer, step_size=7, gamma=0.1)", outer="scheduler.step()"
    ),
    "near miss: steep over epochs, in a loop over folds": make_run(
        sources={
            "train.py": _LOOP.format(
                scheduler="StepLR(optimizer, step_size=7, gamma=0.1)",
                inner="        scheduler.step()",
                outer="",
            )
            .replace("epoch in range(epochs)", "fold in range(5)")
            .replace("data, target in loader", "epoch in range(40)")
        }
    ),
    "near miss: a slow fall for every batch": _loop(
        "ExponentialLR(optimizer, gamma=0.9995)", inner="scheduler.step()"
    ),
    "near miss: a long stride for every batch": _loop(
        "StepLR(optimizer, step_size=10_000, gamma=0.5)", inner="scheduler.step()"
    ),
    "cosine over epochs, per epoch": _loop(_COSINE, outer="scheduler.step()"),
    "near miss: a stride out of sight": _loop(
        "StepLR(optimizer, step_size=epochs * per_epoch // 2)", inner="scheduler.step()"
    ),
    "one cycle, per batch": _loop(_ONE_CYCLE, inner="scheduler.step()"),
    "near miss: cosine over all steps, per batch": _loop(
        "CosineAnnealingLR(optimizer, T_max=epochs * len(loader))", inner="scheduler.step()"
    ),
}
