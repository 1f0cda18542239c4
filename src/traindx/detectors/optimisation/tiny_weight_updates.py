"""Steps change the weights by next to nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from traindx.analysis.curves import curve
from traindx.analysis.recordings.observations import explains_targets
from traindx.analysis.recordings.traces import Trace, told_once, traces_of
from traindx.examples import decay, flat, join, recorded, watched, weights
from traindx.model.findings import Finding, Strength, cite_record
from traindx.model.recording import Process, Sample
from traindx.model.run import Floats, Run
from traindx.registry import detector

SMALL = 1e-5  # of the weights' norm; a thousand such steps change a hundredth
NOTHING = 1e-6  # of it: a thousand such steps change a thousandth
ENOUGH = 4  # samples
POINTS = 30  # of the loss
LEARNT = 0.05  # of the starting loss
CONSTANT = 1.05  # the highest rate over the lowest
ADAPTIVE = ("adam", "lion", "rmsprop", "lamb", "adafactor")  # the gradient's size cancels out


@detector(needs=("recording", "loss"), suggests=("lr-too-low",))
def check(run: Run) -> Iterator[Finding]:
    """No step of the whole run changes the weights by 1e-5, and the loss stays where it is.

    ## What it detects
    The change of the weight matrices per step, relative to their norm: its largest value over all
    samples is below a hundred-thousandth, in a run whose loss gains less than 5 %.

    ## Why it matters
    The run would need many times its steps to get anywhere.

    ## What to do
    Raise the learning rate tenfold until a step changes the weights by about a thousandth.

    ## When it is wrong
    Late in a schedule small steps are healthy, so the largest step of the run counts. A model that
    is already trained barely moves as well, and so does the beginning of a warm-up or the end of a
    decay. An optimizer of Adam's kind takes steps of the size of the learning rate whatever the
    gradient, so with one of these and a rate that never changed it shows the cause, unless the
    targets were explained from the start; elsewhere it only supports what the loss shows.
    """
    if not _stands_still(run):
        return
    yield from told_once(run, lambda process: _look(run, process))


def _stands_still(run: Run) -> bool:
    loss = run.objective()
    finite = None if loss is None else loss.finite().values
    if finite is None or len(finite) < POINTS:
        return False
    c = curve(finite)
    return abs(c.start_value - c.end_value) < LEARNT * abs(c.start_value)


def _look(run: Run, process: Process) -> Iterator[Finding]:
    traces = [t for t in traces_of(process) if t.is_owned and t.is_matrix and t.has_gradient]
    ratios = _ratios(traces)
    if len(ratios) < ENOUGH:
        return
    sample, largest = max(ratios, key=lambda pair: pair[1])
    if not 0.0 < largest < SMALL:
        return
    is_fresh = not explains_targets(process)
    is_all_by_rate = _is_adaptive(process) and _is_constant(run) and is_fresh
    says = f"the largest sampled step, {sample.step}, changes the weights by {largest:.1e}"
    yield Finding(
        claim=f"No step changes the weights by more than {largest:.0e} of their norm",
        strength=Strength.MODERATE,
        evidence=(cite_record(process, sample.line, says, step=sample.step, ratio=largest),),
        suggests={"lr-too-low": Strength.STRONG if largest < NOTHING else Strength.MODERATE},
        shows="lr-too-low" if is_all_by_rate else None,
        is_symptom=is_all_by_rate,
        onset=float(ratios[0][0].step),
    )


def _is_adaptive(process: Process) -> bool:
    """Tell whether every optimizer divides the gradient by its own size."""
    kinds = [o.type.lower() for o in process.optimizers]
    return bool(kinds) and all(any(word in k for word in ADAPTIVE) for k in kinds)


def _is_constant(run: Run) -> bool:
    rate = run.get("lr")
    finite = rate.finite().values if rate is not None else np.empty(0)
    return len(finite) > 0 and float(finite.max()) <= CONSTANT * float(finite.min())


def _ratios(traces: Sequence[Trace]) -> list[tuple[Sample, float]]:
    """The largest over weight matrices, per sample."""
    found: dict[int, tuple[Sample, float]] = {}
    for trace in traces:
        for sample, ratio in zip(trace.samples, trace.ratios, strict=True):
            if (
                ratio is not None
                and isfinite(ratio)
                and sample.optimizer == trace.parameter.optimizer
            ):
                known = found.get(sample.line, (sample, 0.0))[1]
                found[sample.line] = (sample, max(known, ratio))
    return list(found.values())


def _run(loss: Floats, *ratios: float) -> Run:
    process = watched(*weights("0.weight", "2.weight"), count=len(ratios))
    told = (
        replace(s, update_ratios=(r, r / 2)) for s, r in zip(process.samples, ratios, strict=True)
    )
    return recorded(replace(process, samples=tuple(told)), loss_train=loss)


_FLAT = flat(60, 2.3, noise=0.005)

FIRES = {"a ten-millionth": _run(_FLAT, *[1e-7] * 6)}

SILENT = {
    "usual steps": _run(_FLAT, *[1e-3] * 6),
    "near miss: small late in a schedule": _run(_FLAT, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
    "near miss: small, and learning": _run(join(decay(60)), *[1e-7] * 6),
}
