"""How far the steps of a recorded process move its weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log, prod, sqrt

import numpy as np

from traindx.analysis.metrics.objective import finite_objective, share_gained
from traindx.analysis.program.origins import loads_weights
from traindx.analysis.recordings.observations import explains_targets, last_step
from traindx.analysis.recordings.predictions import has_large_targets
from traindx.analysis.recordings.traces import ADAPTERS, Trace, latest_optimizers, traces_of
from traindx.model.recording import Process, Sample
from traindx.model.run import Floats, Run, Series

AT_CHANCE = 0.1  # how far the loss may be from that of a guess
NORMALISED = ("adam", "lion", "rmsprop")  # a step is as large as the rate, whatever the gradient
BY_RATE = 0.05  # of the rate, per weight: the least step of these unless the gradient is nothing
PLAIN_LOW = 1e-4  # for SGD; recipes lie a hundred times above
PLAIN_USUAL = 0.01  # for SGD; at this rate …
PLAIN_ENOUGH = 0.3  # … the same gradients would move the weights by this much
WARM = 0.5  # of the highest rate, at most, at the start of a warm-up
HALVES = ("float16", "bfloat16")
REACHED_SAMPLES = 5  # samples
STILL = 0.6  # of the samples in which a weight had a gradient
FULL = 0.5  # of the highest learning rate
SETTLED = 10  # steps; adaptive optimizers begin with large ones
EARLY = 0.4  # of the run
EARLY_SAMPLES = 3
ERASING = 1.0  # of what a sound layer passes on: the step alone passes on as much
TWICE = 2.0  # the weights' norm
BLOWN_UP = 10.0  # the weights' norm, afterwards, over that at the start
LARGE = 0.1  # of the weights' norm in one step, in the middle layer; recipes stay below 0.01
LARGE_SAMPLES = 3
REPLACED = 1.0  # of their norm: a step that is larger than the weights
INFLATED = 3.0  # the weights' norm, afterwards, over that at the start
EXPLODED = 5.0  # the highest loss over the first
POINTS = 10  # of the loss
LEARNT = 0.1  # of the starting loss
LASTING = 0.08  # of the weights' norm, on average before the rate decays; recipes stay below 0.06
STALLED = 0.25  # of the starting loss gained at most, under such steps
RECOVERED = 0.75  # of the first loss gained: it got over it


def update_ratios(
    traces: Sequence[Trace], over: Callable[[list[float]], float]
) -> list[tuple[Sample, float]]:
    """Return the change of the weights over their norm, by sample; `over` picks a matrix."""
    found: dict[int, tuple[Sample, list[float]]] = {}
    for trace in map(Trace.of_owner, traces):
        for sample, ratio in zip(trace.samples, trace.ratios, strict=True):
            if ratio is not None and isfinite(ratio):
                found.setdefault(sample.line, (sample, []))[1].append(ratio)
    return [(sample, float(over(ratios))) for sample, ratios in found.values()]


def growth(traces: Sequence[Trace], enough: int = 1) -> float:
    """Return how many times their first norm the weights reach, in the middle matrix."""
    known = [t.norms for t in traces if len(t.norms) >= enough and t.norms[0] > 0.0]
    return float(np.median([max(norms) / norms[0] for norms in known])) if known else 1.0


def travelled(traces: Sequence[Trace], steps: int, enough: int) -> float | None:
    """Return the change over a run if all steps went the same way, of the matrix that moves most.

    It is in units of the norm, from the mean of the sampled steps, of which there must be enough.
    """
    owned = ((r for r in t.of_owner().ratios if r is not None and isfinite(r)) for t in traces)
    means = [float(np.mean(ratios)) for ratios in map(list, owned) if len(ratios) >= enough]
    return max(means) * steps if means else None


def uses_only(process: Process, *kinds: str) -> bool:
    """Tell whether every optimizer is of one of the kinds, named by a part of the name."""
    types = [o.type.lower() for o in latest_optimizers(process)]
    return bool(types) and all(any(kind in type for kind in kinds) for type in types)


def guess_loss(process: Process) -> float | None:
    """Return the loss of a guess, where one cross-entropy over a few classes is all of the loss."""
    given = [i for s in process.samples for i in s.losses]
    classes = {i.classes for i in given if i.loss in ("cross_entropy", "nll_loss")}
    is_alone = all(len(s.losses) == 1 for s in process.samples)
    return log(min(classes)) if is_alone and len(classes) == 1 and min(classes) >= 2 else None


def step_gains(traces: Sequence[Trace]) -> dict[int, float]:
    """By sample, how much of its input's spread the step alone passes on, in the middle matrix."""
    found: dict[int, list[float]] = {}
    for trace in traces:
        inputs = prod(trace.parameter.shape[1:])
        for sample, ratio, norm in zip(trace.samples, trace.ratios, trace.norms, strict=True):
            if ratio is not None and isfinite(ratio * norm):
                gain = ratio * norm * sqrt(inputs / max(trace.size, 1))
                found.setdefault(sample.line, []).append(gain)
    return {line: float(np.median(gains)) for line, gains in found.items()}


def is_warming(values: Floats) -> bool:
    """Tell whether the rate was still rising at the end: the run was cut short, or tried out."""
    return bool(values[-1] >= 0.98 * values.max() and values[0] < WARM * values.max())


def passes_over_data(process: Process) -> int:
    """How often the data were gone through in training."""
    return sum(e.is_whole and e.trained > 0 for e in process.epochs)


def starts_fresh(run: Run, process: Process, values: Floats) -> bool:
    """Tell whether the model knows nothing: it guesses, or no weights were loaded into it."""
    chance = guess_loss(process)
    if chance is not None:
        return abs(float(np.median(values)) - chance) < AT_CHANCE * chance
    if explains_targets(process):
        return False
    is_adapted = any(ADAPTERS.search(p.name) for m in process.models for p in m.parameters)
    # weights that come from elsewhere have nowhere to go
    return bool(run.sources) and not loads_weights(run) and not is_adapted


def is_limited_by_rate(process: Process, traces: Sequence[Trace], far: float, peak: float) -> bool:
    """Tell whether it is the rate that makes the steps small, not the gradient."""
    if uses_only(process, *NORMALISED):
        steps = [
            ratio * norm / sqrt(max(t.size, 1))
            for t in traces
            for ratio, norm in zip(t.ratios, t.norms, strict=True)
            if ratio is not None and isfinite(ratio * norm)
        ]
        return max(steps, default=0.0) > BY_RATE * peak > 0.0
    is_plain = {o.type.lower() for o in latest_optimizers(process)} == {"sgd"}
    return is_plain and 0.0 < peak < PLAIN_LOW and far * PLAIN_USUAL / peak > PLAIN_ENOUGH


def at_full_rate(process: Process, rate: Series | None) -> Process:
    """Leave out the samples of a warm-up and of the end of a schedule: small rates move little."""
    known = None if rate is None else rate.finite()
    if known is None or not len(known):
        return process
    rates = np.interp([s.step for s in process.samples], known.steps, known.values)
    full = rates >= FULL * known.values.max()
    kept = (s for s, is_full in zip(process.samples, full, strict=True) if is_full)
    return replace(process, samples=tuple(kept))


def half_precision_matrices(process: Process) -> list[list[Trace]]:
    """Return the matrices of half precision of each optimizer.

    A scale of one, as norms have it, is beyond the reach of any usual step and does no harm.
    """
    found: dict[int, list[Trace]] = defaultdict(list)
    for trace in (t.of_owner() for t in traces_of(process) if t.is_matrix):
        owner, dtype = trace.parameter.optimizer, trace.parameter.dtype
        if owner is not None and dtype in HALVES and len(_reached(trace)) >= REACHED_SAMPLES:
            found[owner].append(trace)
    return list(found.values())


def _reached(trace: Trace) -> list[bool]:
    """Return whether it moved, at the steps at which it had a gradient."""
    pairs = zip(trace.moves, trace.grads, strict=True)
    return [moved for moved, grad in pairs if moved is not None and grad is not None and grad > 0]


def is_mostly_still(trace: Trace) -> bool:
    """Tell whether a weight mostly stays where it was although it has a gradient."""
    moved = _reached(trace)
    return moved.count(False) >= STILL * len(moved)


def early_updates(process: Process, traces: Sequence[Trace]) -> tuple[Sample, Sample, float] | None:
    """Return the first and the last step before the rate decays, and their mean update."""
    until = max(float(SETTLED), EARLY * last_step(process))
    early = [(s, r) for s, r in update_ratios(traces, np.median) if SETTLED / 2 <= s.step <= until]
    if len(early) < EARLY_SAMPLES:
        return None
    return early[0][0], early[-1][0], float(np.mean([r for _, r in early]))


def erasing_update(process: Process, traces: Sequence[Trace]) -> tuple[Sample, float] | None:
    """Return one of the first steps of an adaptive optimizer that outdoes every layer by itself.

    The weights are many times as large afterwards, and no large targets ask for that.
    """
    is_blown_up = len(traces) > 1 and growth(traces) >= BLOWN_UP
    if not is_blown_up or not uses_only(process, *NORMALISED) or has_large_targets(process):
        return None
    sizes = step_gains(traces)
    for sample, ratio in update_ratios(traces, np.median):
        is_first = sample.step < SETTLED and ratio > TWICE
        if is_first and sizes.get(sample.line, 0.0) > ERASING:
            return sample, ratio
    return None


@dataclass(frozen=True, slots=True)
class Wreck:
    """A first step that is larger than the weights; is it seen in the loss or in every layer?"""

    sample: Sample
    ratio: float
    then: str
    is_seen: bool


def wrecking_update(run: Run, process: Process, traces: Sequence[Trace]) -> Wreck | None:
    """Return one of the first steps that replaces the weights, in a run that does not recover."""
    updates = [(s, r) for s, r in update_ratios(traces, np.median) if s.step < SETTLED]
    wrecking = [(s, r) for s, r in updates if r > REPLACED]
    if wrecking and growth(traces) > INFLATED and not _learns(run, from_first=True):
        loss = finite_objective(run)
        values = loss.values if loss is not None else np.ones(1)
        rose = float(values.max()) / max(abs(float(values[0])), 1e-12)
        then = "and the loss ends no lower than it began"
        return Wreck(*wrecking[0], then, is_seen=rose > EXPLODED)
    gained, step = share_gained(run, POINTS, from_first=True), erasing_update(process, traces)
    if step is None or gained is None or gained > RECOVERED:
        return None
    return Wreck(*step, f"which grow {growth(traces):.0f}-fold", is_seen=True)


def lasting_updates(
    run: Run, process: Process, traces: Sequence[Trace]
) -> tuple[Sample, Sample, float, float] | None:
    """Return steps that are large as long as the rate is, and only make the weights larger.

    These are the first and the last of them, their mean, and what the loss gained.
    """
    early, gained, grown = early_updates(process, traces), share_gained(run, POINTS), growth(traces)
    is_carried = any(s.carried for s in process.samples)  # gradients that pile up do the same
    if early is None or gained is None or is_carried or gained > STALLED:
        return None
    return None if early[2] < LASTING or grown < INFLATED else (*early, gained)


def large_updates(run: Run, traces: Sequence[Trace]) -> tuple[Sample, float, float] | None:
    """Return the first of many large steps and their middle, where the loss does not fall."""
    late = [(s, r) for s, r in update_ratios(traces, np.median) if s.step >= SETTLED]
    large = [(s, r) for s, r in late if r > LARGE]
    if len(large) < LARGE_SAMPLES or len(large) <= len(late) / 2 or _learns(run):
        return None
    return *large[0], float(np.median([r for _, r in large]))


def _learns(run: Run, *, from_first: bool = False) -> bool:
    """Tell whether the loss fell, from its first level or from its very first value."""
    gained = [share_gained(run, POINTS)]
    gained += [share_gained(run, POINTS, from_first=True)] if from_first else []
    return all(g is None or g > LEARNT for g in gained)
