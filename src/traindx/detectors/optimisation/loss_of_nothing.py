"""The loss is zero from the first step on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traindx.evidence import Evidence, Finding, Location, Strength, cite
from traindx.examples import decay, flat, join
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, argument, key_of, literal

POINTS = 5
PHASES = ("train", "val", "test")
RIGHT = 0.9  # of the answers; a loss of nothing leaves no mistakes
NOTHING = 1e-7
DECIMALS = 6  # a log that prints fewer rounds a small loss to zero
SOFTMAX = ("cross_entropy", "CrossEntropyLoss", "log_softmax", "softmax")
RESHAPES = ("reshape", "view", "unsqueeze")


@detector(needs=("loss",), suggests=("wrong-loss-for-task", "degenerate-batch", "padding-in-loss"))
def check(run: Run) -> Iterator[Finding]:
    """The training loss is exactly zero from its first value to its last.

    ## What it detects
    A loss of which no value differs from zero. With the source at hand, also whether a
    cross-entropy is taken over a single output.

    ## Why it matters
    A model that knows nothing yet is wrong about something. A loss of zero says nothing and has no
    gradient: softmax over one output is always 1, whatever the model computes.

    ## What to do
    One output for two classes: `BCEWithLogitsLoss`. An amount: `MSELoss`. Several classes: as many
    outputs as classes. Else look at what is compared: the target may be the prediction itself, or
    everything may be masked.

    ## When it is wrong
    A log that prints few digits shows zeros for a small loss; with fewer than six it counts only
    where the source shows the single output, or an accuracy says that many answers are wrong.
    """
    loss = run.objective()
    finite = loss.finite() if loss is not None else None
    if loss is None or finite is None or len(finite) < POINTS or len(finite) < len(loss):
        return
    if float(np.abs(finite.values).max()) > NOTHING:
        return
    says = f"{loss.name} is 0 at all of its {len(finite)} points"
    evidence: tuple[Evidence, ...] = (cite(loss, says, 0, -1),)
    single = _single_output(run)
    if single is None and 0 < loss.origin.decimals < DECIMALS and not _is_often_wrong(run):
        return
    yield Finding(
        claim="The loss is zero from the first step: nothing can be learnt from it",
        strength=Strength.STRONG,
        evidence=(*evidence, single[0]) if single else evidence,
        suggests={
            "wrong-loss-for-task": Strength.MODERATE,
            "degenerate-batch": Strength.WEAK,
            "padding-in-loss": Strength.WEAK,
        },
        shows="wrong-loss-for-task" if single else None,
        is_symptom=True,
        onset=float(loss.steps[0]),
        location=single[1] if single else None,
    )


def _is_often_wrong(run: Run) -> bool:
    """Tell whether an accuracy contradicts a loss that is as small as the log's digits."""
    told = [s.finite() for p in PHASES if (s := run.get(f"accuracy/{p}")) is not None]
    values = [float(s.values.max()) for s in told if len(s) >= POINTS]
    return bool(values) and max(values) < RIGHT


def _single_output(run: Run) -> tuple[Evidence, Location] | None:
    """Return where a softmax is taken over one output, if the source shows that."""
    for module in project_of(run).training_modules:
        for call in module.nodes(ast.Call):
            name = module.qualified(call.func) or key_of(call.func) or ""
            if name.rpartition(".")[2] in SOFTMAX and _is_single(module, call):
                says = f"`{ast.unparse(call)}`: over one output, softmax is always 1"
                return module.cite(call, says), module.location(call)
    return None


def _is_single(module: Module, call: ast.Call) -> bool:
    """Tell whether the outputs are made one column, or come from layers that have one output."""
    shaped = [c for a in call.args[:1] for c in ast.walk(a) if isinstance(c, ast.Call)]
    if any(_makes_column(c) for c in shaped):
        return True
    last = [c for c in module.nodes(ast.Call) if (key_of(c.func) or "").endswith("Linear")]
    widths = [_width(module, w) for c in last if (w := argument(c, "out_features", 1)) is not None]
    return bool(widths) and widths[-1] == 1


def _width(module: Module, size: ast.expr) -> object:
    """A number of outputs as it is written, or as the default of a parameter nobody gives."""
    function = module.function_of(size)
    if not isinstance(size, ast.Name) or function is None:
        return literal(size)
    spec = function.args
    with_default = spec.args[len(spec.args) - len(spec.defaults) :]
    default = dict(zip((a.arg for a in with_default), spec.defaults, strict=True)).get(size.id)
    position = [a.arg for a in spec.args if a.arg != "self"].index(size.id) if default else 0
    cls = module.class_of(function)
    made = [c for c in module.nodes(ast.Call) if cls is not None and key_of(c.func) == cls.name]
    is_given = any(argument(c, size.id, position) is not None for c in made)
    return None if is_given or default is None else literal(default)


def _makes_column(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    last = literal(call.args[-1]) if call.args else None
    return name in RESHAPES and (last == 1 or (name == "unsqueeze" and last == -1))


_SOURCE = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, {outputs}))
criterion = nn.CrossEntropyLoss()
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""
_ZERO = flat(40, 0.0, noise=0.0)


def _run(outputs: int) -> Run:
    text = _SOURCE.format(outputs=outputs)
    return make_run({"loss/train": _ZERO}, sources={"train.py": text})


def _rounded(accuracy: float | None = None) -> Run:
    told = {} if accuracy is None else {"accuracy/val": flat(40, accuracy, noise=0.0)}
    run = make_run({"loss/train": _ZERO, **told})
    loss = run.series["loss/train"]
    rounded = replace(loss, origin=replace(loss.origin, decimals=2))
    return replace(run, series={**run.series, "loss/train": rounded})


FIRES = {
    "zero all along": make_run({"loss/train": _ZERO}),
    "a cross-entropy over one output": _run(1),
    "over two": _run(2),
    "rounded, and wrong half of the time": _rounded(0.48),
}

SILENT = {
    "it learns": make_run({"loss/train": decay(40)}),
    "near miss: falls to zero": make_run({"loss/train": join([0.3], _ZERO)}),
    "near miss: rounded by the log": _rounded(),
    "near miss: rounded, and right": _rounded(0.99),
    "near miss: three points": make_run({"loss/train": _ZERO[:3]}),
}
