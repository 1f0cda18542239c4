"""The learning-rate schedule is stepped at the wrong time or pace."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.errors import names_in
from traindx.source.loaders import resolve
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import argument, key_of, literal
from traindx.source.project import Project

STEPS = (Do.STEP, Do.SCALER_STEP)
PER_BATCH = {"OneCycleLR", "CyclicLR"}
EPOCH_WORDS = ("epoch", "epochs")
OTHER_UNITS = ("step", "iter", "batch", "per_")
NEUTRAL = frozenset({"int", "round", "float", "max", "min", "list", "math", "math.ceil"})
STRIDES = ("StepLR", "MultiStepLR")  # of which an equal number may be chance
GAMMAS = {"StepLR": 2, "ExponentialLR": 1}  # by the position of the factor
COUNTS = ("range", "trange")
DATA = re.compile(
    r"load|\bdl|_dl\b|batch|iter|data|train|sampl|queue|stream|generator|image|img|input|label"
    r"|\bds\b|(?:^|[_ ,(])[xy]\b"
)
COUNTED = re.compile(r"batch|len\(\w*load|iters?_per|steps?_per")
STEP_WORDS = re.compile(r"range\(.*(?:iter|step|batch)")
OTHER_LOOPS = re.compile(r"epoch|fold|seed|phase|trial|zip\(.*(?:opt|sched)|models|nets\b|clients")
BATCHES = re.compile(r"len\(|batch|iters|per_epoch")
MANY_EPOCHS = 1000  # a larger number counts batches
FEW_BATCHES = 300  # fewer than one epoch of most data; no schedule is meant to end there


@detector(needs=("source",), suggests=("lr-schedule-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """The learning-rate schedule is stepped per batch where it counts epochs, or the reverse.

    ## What it detects
    A scheduler whose length or stride was given in epochs (`T_max=epochs`, `step_size=epochs // 2`,
    `milestones=[0.5 * epochs]`) and that is stepped in the loop over batches; one that falls so
    steeply (StepLR every 7 steps by 0.1, ExponentialLR by 0.9) that stepped for every batch it is
    over within a few hundred batches; one that was given a number of batches (OneCycleLR, CyclicLR)
    and is stepped once per epoch; and one that is stepped for every batch and for every epoch as
    well.

    ## Why it matters
    Counted in the wrong unit the rate falls to its end within the first epochs, or never moves.

    ## What to do
    Step it in the loop whose unit its length was given in.

    ## When it is wrong
    A variable called `epochs` that really counts steps misleads this; so does a schedule that is
    stepped out of sight. Loops over epochs without batches in them, and a step that is told where
    it is, `step(epoch + i / n)`, are left alone.
    """
    project = project_of(run)
    for loop in training_loops(project):
        for act in loop.does(Do.SCHEDULER_STEP):
            fault = _fault(project, loop, act)
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


def _fault(project: Project, loop: TrainingLoop, act: Act) -> tuple[ast.Call, str] | None:
    made = act.value.call
    step = None if made is None else _step_of(loop, made)
    if made is None or step is None or not act.value.is_certain or not _is_bare(act.node):
        return None  # `step(epoch + i / n)` says itself where it is
    if act.guards and [ast.dump(g) for g in act.guards] != [ast.dump(g) for g in step.guards]:
        return None
    kind = act.value.made_by.rsplit(".", 1)[-1]
    per_batch = len(act.loops) >= len(step.loops)
    is_for_batches = per_batch and len(step.loops) > 1 and _is_for_batches(act.loops)
    length = _length(kind, made)
    if is_for_batches and length is not None and _counts_epochs(loop, kind, length):
        return made, f"{kind} counts {ast.unparse(length)} epochs and is stepped for every batch"
    steps = _steps_to_nothing(kind, made)
    if is_for_batches and steps < FEW_BATCHES:
        return made, f"stepped for every batch, {kind} falls a millionfold in {steps:.0f} batches"
    is_for_epochs = not per_batch and _is_for_batches(step.loops)
    if kind in PER_BATCH and is_for_epochs and _counts_batches(project, loop, kind, made):
        return made, f"{kind} counts batches and is stepped once per epoch"
    if _is_stepped_twice(loop, act):
        return made, f"{kind} is stepped for every batch and once more for every epoch"
    return None


def _step_of(loop: TrainingLoop, made: ast.Call) -> Act | None:
    """The step of the optimizer whose rate a schedule sets; of any, where there is only one."""
    given = argument(made, "optimizer", 0)
    key = None if given is None else key_of(given)
    steps = loop.does(*STEPS)
    own = [s for s in steps if s.target == key]
    if own:
        return own[0]
    return steps[0] if len({s.target for s in steps}) == 1 else None


def _counts_batches(project: Project, loop: TrainingLoop, kind: str, made: ast.Call) -> bool:
    """Tell whether a schedule that could count either is given a number of batches."""
    length = argument(made, "step_size_up", 3)
    if kind == "OneCycleLR":
        length = argument(made, "total_steps", 2) or argument(made, "steps_per_epoch", 4)
    if length is None:
        return kind == "CyclicLR"  # 2000 by default
    at: ast.AST = loop.function or loop.module.tree
    length = resolve(project, loop.module, at, length)
    bound = resolve(project, loop.module, at, _bound(loop.node))
    if length is None or (bound is not None and ast.dump(bound) == ast.dump(length)):
        return False
    number = literal(length)
    if isinstance(number, int):
        epochs = literal(bound)
        return number > (2 * epochs if isinstance(epochs, int) else MANY_EPOCHS)
    return bool(BATCHES.search(ast.unparse(length)))


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


def _is_for_batches(loops: tuple[ast.AST, ...]) -> bool:
    """Tell whether the inner loop goes over data, or counts the steps of an epoch."""
    heads = [_head(node) for node in loops]
    return _is_over_batches(loops[-1]) or (
        len(heads) > 1 and "epoch" in heads[-2] and bool(STEP_WORDS.search(heads[-1]))
    )


def _head(node: ast.AST) -> str:
    if not isinstance(node, ast.For):
        return ""
    return f"{ast.unparse(node.target)} {ast.unparse(node.iter)}".lower()


def _is_over_batches(node: ast.AST) -> bool:
    """Tell whether a loop goes over data by its words: no epochs, folds, models or the like."""
    if not isinstance(node, ast.For):
        return False
    head = _head(node)
    is_count = isinstance(node.iter, ast.Call) and key_of(node.iter.func) in COUNTS
    is_data = bool(COUNTED.search(head) if is_count else DATA.search(head))
    return is_data and not OTHER_LOOPS.search(head)


def _is_stepped_twice(loop: TrainingLoop, act: Act) -> bool:
    """Tell whether one schedule is stepped, without an argument, in both of two nested loops."""
    plain = [
        a
        for a in loop.does(Do.SCHEDULER_STEP)
        if a.value.call is act.value.call
        and a.target == act.target
        and not a.guards
        and _is_bare(a.node)
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
    "long cycles by default, per epoch": _loop(
        "CyclicLR(optimizer, 1e-4, 0.05)", outer="scheduler.step()"
    ),
}

SILENT = {
    "near miss: epochs of the full batch, in a loop over runs": make_run(
        sources={
            "train.py": _LOOP.format(
                scheduler="CosineAnnealingLR(optimizer, T_max=epochs)",
                inner="        scheduler.step()",
                outer="",
            )
            .replace("epoch in range(epochs)", "run in range(10)")
            .replace("data, target in loader", "epoch in range(epochs)")
        }
    ),
    "near miss: fractions of an epoch": _loop(_COSINE, inner="scheduler.step(epoch + i / n)"),
    "near miss: one cycle in epochs": _loop(
        "OneCycleLR(optimizer, 0.1, total_steps=epochs)", outer="scheduler.step()"
    ),
    "near miss: short cycles in epochs": _loop(
        "CyclicLR(optimizer, 1e-4, 0.05, step_size_up=10)", outer="scheduler.step()"
    ),
    "near miss: a model after the other": make_run(
        sources={
            "train.py": _LOOP.format(
                scheduler=_COSINE, inner="        scheduler.step()", outer=""
            ).replace("data, target in loader", "model in models")
        }
    ),
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
