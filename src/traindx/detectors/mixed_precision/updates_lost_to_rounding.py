"""Updates of half-precision weights are lost to rounding."""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from traindx.analysis.recordings.traces import Trace, named, told_once, traces_of
from traindx.examples import recorded, watched
from traindx.model.findings import cite_record, finding
from traindx.model.recording import Parameter, Process
from traindx.model.run import Series
from traindx.registry import Findings, Run, detector

CAUSE = "half-precision-weights"
HALVES = ("float16", "bfloat16")
ENOUGH = 5  # samples
STILL = 0.6  # of the samples in which a weight had a gradient
MANY = 0.3  # of the matrices of one optimizer
FULL = 0.5  # of the highest learning rate


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Steps leave weights of half precision exactly as they were, though gradients reach them.

    ## What it detects
    Matrices in float16 or bfloat16 that have gradients, that an optimizer owns, and of which not
    one value changed at most of the steps that were looked at, while others of the same optimizer
    did change.

    ## Why it matters
    bfloat16 keeps eight bits, float16 eleven: an update below 1/500 or 1/4000 of a weight is lost,
    whatever its direction. The loss stalls at what the few moving weights can do.

    ## What to do
    Keep the weights in float32 and compute in `torch.autocast`, or use an optimizer that keeps a
    copy in full precision or rounds stochastically.

    ## When it is wrong
    Steps of a warm-up and of the end of a schedule, at half of the highest rate and less, do not
    count. Where all weights of an optimizer stand still, the rate may be zero or the step may be
    missing, which other detectors report.
    """
    yield from told_once(run, lambda process: _look(process, run.get("lr")))


def _look(process: Process, rate: Series | None) -> Findings:
    for owned in _by_optimizer(_at_full_rate(process, rate)):
        still = [t for t in owned if _is_still(t)]
        moving = [t for t in owned if t not in still and any(t.moves)]
        if not moving or len(still) < MANY * len(owned):
            continue
        says = f"{len(still)} of {len(owned)} half-precision matrices do not change: {named(still)}"
        claim = (
            f"Updates are lost to rounding: {named(still)} in {still[0].parameter.dtype} do "
            "not change, although they have gradients"
        )
        cited = cite_record(process, still[0].samples[-1].line, says, still=len(still))
        yield finding(claim, CAUSE, cited, onset=still[0].samples[0].step)


def _at_full_rate(process: Process, rate: Series | None) -> Process:
    """Leave out the samples of a warm-up and of the end of a schedule: small rates move little."""
    known = None if rate is None else rate.finite()
    if known is None or not len(known):
        return process
    rates = np.interp([s.step for s in process.samples], known.steps, known.values)
    full = rates >= FULL * known.values.max()
    kept = (s for s, is_full in zip(process.samples, full, strict=True) if is_full)
    return replace(process, samples=tuple(kept))


def _by_optimizer(process: Process) -> list[list[Trace]]:
    """Return the matrices of half precision of each optimizer.

    A scale of one, as norms have it, is beyond the reach of any usual step and does no harm.
    """
    found: dict[int, list[Trace]] = defaultdict(list)
    for trace in (t.of_owner() for t in traces_of(process) if t.is_matrix):
        owner, dtype = trace.parameter.optimizer, trace.parameter.dtype
        if owner is not None and dtype in HALVES and len(_reached(trace)) >= ENOUGH:
            found[owner].append(trace)
    return list(found.values())


def _reached(trace: Trace) -> list[bool]:
    """Return whether it moved, at the steps at which it had a gradient."""
    pairs = zip(trace.moves, trace.grads, strict=True)
    return [moved for moved, grad in pairs if moved is not None and grad is not None and grad > 0]


def _is_still(trace: Trace) -> bool:
    moved = _reached(trace)
    return moved.count(False) >= STILL * len(moved)


def _run(
    dtype: str, *still: str, grads: tuple[float, ...] = (0.1, 0.1, 0.1), rate: float = 1e-3
) -> Run:
    """A run whose samples have that rate, below a peak of 1e-3."""
    parameters = [Parameter(n, (16, 16), dtype, True, 0) for n in ("a", "b", "c")]
    process = watched(*parameters, grads=grads, still=still, count=8)
    last = max(s.step for s in process.samples)
    rates = [rate] * (last + 1) + [1e-3] * 20
    return recorded(process, lr=rates)


FIRES = {
    "most stand still": _run("bfloat16", "a", "b"),
    "one of three": _run("float16", "c"),
}

SILENT = {
    "all move": _run("bfloat16"),
    "near miss: full precision": _run("float32", "a", "b"),
    "near miss: nothing moves, as without a step": _run("bfloat16", "a", "b", "c"),
    "near miss: a warm-up, whose rates are small": _run("bfloat16", "a", "b", rate=1e-5),
    "near miss: what stands still has no gradient": _run("bfloat16", "a", grads=(0.0, 0.1, 0.1)),
}
