"""The loss rises from the first step on in a program that writes its own gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from traindx.evidence import Finding, Location, Strength, cite, cite_source
from traindx.examples import decay, flat, join
from traindx.model import Floats, Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module

POINTS = 20
STAGES = 5
LAST = 5  # points: what feeds itself shows most at the end
COPIES = ("clone", "view_as", "view", "contiguous", "expand_as", "type_as")
RISES = 0.002  # of the level, from one fifth of the run to the next
IN_ALL = 1.5  # times the first level; the terms of a sum that grow as planned add less


@detector(needs=("loss", "source"), suggests=("incorrect-custom-backward",))
def check(run: Run) -> Iterator[Finding]:
    """The loss only ever rises, and the source defines a backward of its own.

    ## What it detects
    A training loss that never gets below its first level and climbs from stage to stage of the run,
    in a project with a class derived from `torch.autograd.Function` that is applied.

    ## Why it matters
    A sign error in `backward` turns descent into ascent. It looks like a learning rate that is too
    high, and no learning rate helps.

    ## What to do
    Compare the function with numerical differences: `torch.autograd.gradcheck` in float64.

    ## When it is wrong
    A learning rate that is far too high makes the loss climb from the first step too: lower it a
    hundredfold, and if the loss still climbs, it is the gradient. A function that passes its input
    on unchanged is there for its gradient (reversal, scaling, straight-through) and left alone.
    """
    loss = run.objective()
    if loss is None:
        return
    finite = loss.finite()
    if len(finite) < POINTS or not _only_rises(finite.values):
        return
    for module in project_of(run).modules:
        for cls, line in _custom_gradients(module):
            says = f"{cls} defines the gradient of its own operation"
            stages = f"{finite.origin.name} climbs from {finite.values[0]:.3g} on and never falls"
            yield Finding(
                claim=f"The loss climbs from the first step on, through the backward of {cls}",
                strength=Strength.STRONG,
                evidence=(cite(finite, stages, 0, -1), cite_source(module.path, line, says)),
                suggests={"incorrect-custom-backward": Strength.STRONG},
                against={"lr-too-high": Strength.STRONG},
                is_symptom=True,
                onset=float(finite.steps[0]),
                location=Location(module.path, line, line),
            )


def _only_rises(values: Floats) -> bool:
    levels = [float(np.median(part)) for part in np.array_split(values, STAGES)]
    climbs = all(after > before * (1 + RISES) for before, after in pairwise(levels))
    return 0 < levels[0] < float(np.median(values[-LAST:])) / IN_ALL and climbs


def _custom_gradients(module: Module) -> Iterator[tuple[str, int]]:
    """Yield each class that defines a backward and is applied, with the line of its backward."""
    for name, function in module.functions.items():
        cls, _, method = name.rpartition(".")
        is_applied = f"{cls.rpartition('.')[2]}.apply" in module.text
        if method == "backward" and cls and is_applied and not _passes_on(module, cls):
            returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
            yield cls, returns[-1].lineno if returns else function.lineno


def _passes_on(module: Module, cls: str) -> bool:
    """Tell whether the forward of a class returns what it was given."""
    forward = module.functions.get(f"{cls}.forward")
    if forward is None:
        return False
    given = {a.arg for a in forward.args.args}
    returned = [n.value for n in ast.walk(forward) if isinstance(n, ast.Return) and n.value]
    return bool(returned) and all(_source_of(value) in given for value in returned)


def _source_of(value: ast.expr) -> str:
    """Return the name behind `x`, `x.clone()`, `x.view_as(x)`, `x * 1.0`."""
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr not in COPIES:
                return ""
            value = value.func.value
        elif isinstance(value, ast.BinOp) and isinstance(value.right, ast.Constant):
            if not isinstance(value.op, ast.Mult) or value.right.value != 1:
                return ""
            value = value.left
        else:
            return value.id if isinstance(value, ast.Name) else ""


_SOURCE = """
import torch
class Leaky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, 0.1 * x)
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, -grad, 0.1 * grad)
for x, y in loader:
    loss = criterion(model(Leaky.apply(x)), y)
"""
_REVERSAL = """
import torch
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None
for x, y in loader:
    loss = criterion(model(Reverse.apply(x, 1.0)), y)
"""
_CLIMB = 2.3 * np.exp(np.linspace(0.0, 3.0, 100))


def _run(loss: Floats, source: str = _SOURCE) -> Run:
    return make_run({"loss/train": loss}, sources={"train.py": source})


FIRES = {"a sign error": _run(_CLIMB)}

SILENT = {
    "a custom function that learns": _run(decay(100)),
    "near miss: it learnt first, then diverged": _run(join(decay(50), _CLIMB[:50])),
    "near miss: a climb without a function of one's own": _run(_CLIMB, "import torch\n"),
    "near miss: a gradient reversal": _run(_CLIMB, _REVERSAL),
    "flat": _run(flat(100, 2.3, noise=0.02)),
}
