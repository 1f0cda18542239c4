"""Each step changes the weights by a large part of their size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from traindx.evidence import Finding, Strength, cite_record
from traindx.examples import decay, flat, recorded, watched, weights
from traindx.model import Floats, Run
from traindx.recording import Process, Sample
from traindx.registry import detector
from traindx.runtime.traces import Trace, told_once, traces_of
from traindx.stats import curve

LARGE = 0.1  # of the weights' norm in one step, in the middle layer; recipes stay below 0.01
REPLACED = 1.0  # of their norm: a step that is larger than the weights
INFLATED = 3.0  # the weights' norm, afterwards, over that at the start
EXPLODED = 5.0  # the highest loss over the first
SETTLED = 10  # steps; adaptive optimizers begin with large ones
ENOUGH = 3  # samples
POINTS = 10  # of the loss
LEARNT = 0.1  # of the starting loss


@detector(needs=("recording", "loss"), suggests=("lr-too-high",))
def check(run: Run) -> Iterator[Finding]:
    """A step changes the weights by a tenth of their norm or more, and the loss does not fall.

    ## What it detects
    Sampled steps, the first ten left out, in most of which the middle weight matrix of the model
    changes by more than a tenth of its norm, in a run whose loss does not come down; or one of the
    first steps that is larger than the weights and leaves them several times their size.

    ## Why it matters
    What one batch teaches, the next one overwrites.

    ## What to do
    Lower the learning rate tenfold; one percent per step is already much.

    ## When it is wrong
    Small matrices and the first steps of Adam change a lot in runs that learn well; where the loss
    falls, nothing is said, and this only supports what the loss shows, unless the loss rose
    several-fold with such a first step.
    """
    yield from told_once(run, lambda process: _look(run, process))


def _learns(run: Run, *, from_first: bool = False) -> bool:
    """Tell whether the loss fell, from its first level or from its very first value."""
    loss = run.objective()
    finite = None if loss is None else loss.finite().values
    if finite is None or len(finite) < POINTS:
        return True
    c = curve(finite)
    start = min(float(finite[0]), c.start_value) if from_first else c.start_value
    return start - c.end_value > LEARNT * abs(start)


def _look(run: Run, process: Process) -> Iterator[Finding]:
    traces = [t for t in traces_of(process) if t.is_owned and t.is_matrix]
    ratios = _ratios(traces)
    late = [(s, r) for s, r in ratios if s.step >= SETTLED]
    large = [(s, r) for s, r in late if r > LARGE]
    wrecking = [(s, r) for s, r in ratios if s.step < SETTLED and r > REPLACED]
    if wrecking and _growth(traces) > INFLATED and not _learns(run, from_first=True):
        yield _wrecked(run, process, *wrecking[0])
        return
    if len(large) < ENOUGH or len(large) <= len(late) / 2 or _learns(run):
        return
    sample, ratio = large[0]
    middle = float(np.median([r for _, r in large]))
    says = f"the middle weight matrix changes by {ratio:.0%} of its norm at step {sample.step}"
    yield Finding(
        claim=f"A step changes the weights by {middle:.0%} of their norm, the loss does not fall",
        strength=Strength.MODERATE,
        evidence=(cite_record(process, sample.line, says, step=sample.step, ratio=ratio),),
        suggests={"lr-too-high": Strength.MODERATE},
        onset=float(sample.step),
    )


def _growth(traces: Sequence[Trace]) -> float:
    """How far the weights' norms grew over the samples, in the middle."""
    grown = [max(t.norms) / t.norms[0] for t in traces if t.norms and t.norms[0] > 0.0]
    return float(np.median(grown)) if grown else 1.0


def _wrecked(run: Run, process: Process, sample: Sample, ratio: float) -> Finding:
    loss = run.objective()
    values = loss.finite().values if loss is not None else np.ones(1)
    rose = float(values.max()) / max(abs(float(values[0])), 1e-12)
    says = f"the middle weight matrix changes by {ratio:.1f} times its norm at step {sample.step}"
    is_seen = rose > EXPLODED
    return Finding(
        claim=f"Step {sample.step} is {ratio:.1f} times as large as the weights, "
        f"the loss ends no lower than it began",
        strength=Strength.STRONG if is_seen else Strength.MODERATE,
        evidence=(cite_record(process, sample.line, says, step=sample.step, ratio=ratio),),
        suggests={"lr-too-high": Strength.STRONG if is_seen else Strength.MODERATE},
        is_symptom=is_seen,
        onset=float(sample.step),
    )


def _ratios(traces: Sequence[Trace]) -> list[tuple[Sample, float]]:
    """The median over weight matrices, per sample."""
    found: dict[int, tuple[Sample, list[float]]] = {}
    for trace in traces:
        for sample, ratio in zip(trace.samples, trace.ratios, strict=True):
            if (
                ratio is not None
                and isfinite(ratio)
                and sample.optimizer == trace.parameter.optimizer
            ):
                found.setdefault(sample.line, (sample, []))[1].append(ratio)
    return [(s, float(np.median(r))) for s, r in found.values()]


def _run(ratio: float, loss: Floats, early: int = 99) -> Run:
    process = watched(*weights("0.weight", "2.weight", "4.weight"), count=8)
    told = (
        replace(s, update_ratios=(ratio, ratio, ratio) if i < early else (1e-3, 1e-3, 1e-3))
        for i, s in enumerate(process.samples)
    )
    return recorded(replace(process, samples=tuple(told)), loss_train=loss)


def _replaced(*loss: float) -> Run:
    """A first step of seven times the weights, which are large from then on."""
    run = _run(7.0, np.array(loss), early=1)
    process = run.recording.processes[0] if run.recording is not None else Process()
    told = (
        replace(s, weight_norms=(1.0,) * 3 if i == 0 else (8.0,) * 3)
        for i, s in enumerate(process.samples)
    )
    return recorded(replace(process, samples=tuple(told)), loss_train=np.array(loss))


_CHANCE = [0.7] * 30

FIRES = {
    "half of the weights in every step": _run(0.5, flat(80, 2.5, noise=0.1)),
    "a first step that replaces the weights": _replaced(0.7, 400.0, 90.0, 10.0, 2.0, *_CHANCE),
}

SILENT = {
    "usual steps": _run(1e-3, flat(80, 2.5, noise=0.1)),
    "near miss: large, and learning": _run(0.5, decay(80)),
    "near miss: small weights replaced, and learning": _replaced(*decay(40)),
    "near miss: only at the start": _run(0.5, flat(80, 2.5, noise=0.1), early=1),
}
