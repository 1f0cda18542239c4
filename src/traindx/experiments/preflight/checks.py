"""What experts look at before a long job, judged on the values of a short rerun.

A check fails only on what is wrong whatever was meant. What could be meant, or could not be seen,
is not judged, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, log

import numpy as np

from traindx.analysis.curves import slope_z
from traindx.analysis.recordings.observations import is_integer, is_sound, processes_of
from traindx.analysis.recordings.traces import (
    FOLLOWERS,
    Trace,
    latest_models,
    latest_optimizers,
    named,
    share,
    traces_of,
)
from traindx.model.findings import Evidence, Severity, cite, cite_record
from traindx.model.preflight import Check, Outcome
from traindx.model.recording import LossInput, Process, Sample, Summary
from traindx.model.run import Run, Series

EARLY = 1  # steps: a later sample is not of the weights as they were initialised
ABOVE = 2.5  # times the loss of guessing, and …
ABOVE_NATS = 3.0  # … by so much: logits with a spread of about three, however few the classes
NEAR = 1.6  # times the loss of guessing; logits with a spread of one give less
LARGE_OUTPUT = 10.0  # of a regression at the start; layers as torch makes them give less than one
SCALING = ("div", "mul", "where", "cat", "index_put", "scatter")
CLASS_LOSSES = ("cross_entropy", "nll_loss")
BINARY_LOSSES = ("bce", "bce_with_logits")
SQUARED_LOSSES = ("mse_loss",)
REGRESSION_LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")

ENOUGH_SAMPLES = 4
NEGLIGIBLE = 1e-3  # of the numbers of a model
MOST = 0.5

FIT = 0.2  # of the first loss: the batch is learnt by heart
STUCK = 0.98  # of the first loss
FEWEST_STEPS = 100  # on one batch, before a loss that does not fall means anything
BEGUN = 0.5  # of the loss of guessing: what begins below has learnt before, and may be done
NOTICEABLE = 1e-5  # relative change of the weights in a step; less is lost in the noise of dropout
NO_TREND = -2.0  # Mann-Kendall: a loss that falls at all, however slowly, is below

RAW = 100.0
SAME = 1e-3  # relative difference of a loss; sums in another order differ by far less


def passed(name: str, title: str, says: str, *evidence: Evidence) -> Check:
    """Return a check that is well."""
    return Check(name, title, Outcome.PASSED, says, evidence)


def unjudged(name: str, title: str, why: str, *evidence: Evidence) -> Check:
    """Return a check on which nothing can be said, and why."""
    return Check(name, title, Outcome.OPEN, why, evidence)


# --- the loss at initialisation -------------------------------------------------------------------

FIRST_LOSS = ("first-loss", "loss at initialisation")


def first_loss(run: Run) -> Check:
    """Compare the first loss with that of guessing."""
    process, sample = _first_sample(run)
    if process is None or sample is None:
        return unjudged(*FIRST_LOSS, "no step was looked at before the weights had changed")
    if not isfinite(sample.loss):
        says = f"the loss is {sample.loss} at the first step"
        cited = cite_record(process, sample.line, says, step=sample.step)
        fix = "find the operation that gives it: traindx run shows where it arises"
        return _failed(FIRST_LOSS, says, Severity.CRITICAL, fix, cited)
    if run.objective() is None:
        return unjudged(*FIRST_LOSS, "losses that pull at each other have no known start")
    known = [i for i in sample.losses if i.loss in (*CLASS_LOSSES, *BINARY_LOSSES, *SQUARED_LOSSES)]
    if len(known) != 1 or len(sample.losses) != 1 or not is_sound(known[0]):
        what = "of several terms" if len(sample.losses) > 1 else "of a kind with no known start"
        return unjudged(*FIRST_LOSS, f"{sample.loss:.4g} is a loss {what}")
    if known[0].loss in CLASS_LOSSES:
        return _classes_start(process, sample, known[0])
    if known[0].loss in BINARY_LOSSES:
        return _binary_start(process, sample, known[0])
    return _regression_start(process, sample, known[0])


def _first_sample(run: Run) -> tuple[Process | None, Sample | None]:
    for process in processes_of(run):
        for sample in process.samples[:1]:
            return process, sample if sample.step <= EARLY else None
    return None, None


def _classes_start(process: Process, sample: Sample, given: LossInput) -> Check:
    if given.classes < 2:
        return unjudged(*FIRST_LOSS, "the number of classes is not known")
    depth = -given.prediction.mean  # of log-probabilities, the mean over all classes
    if given.producer in SCALING or given.prediction.shape[:1] == (given.classes,):
        depth = float("nan")  # similarities over a temperature, or with a margin, begin far out
    expected = f"ln {given.classes} = {log(given.classes):.3f}"
    return _against_guess(process, sample, log(given.classes), depth, expected)


def _binary_start(process: Process, sample: Sample, given: LossInput) -> Check:
    seen = given.prediction
    is_logit = given.loss == "bce_with_logits"
    # a sum over the batch, or a weight of the positive class, makes the loss large on its own
    depth = max(abs(seen.mean), seen.std) if is_logit else float("nan")
    return _against_guess(process, sample, log(2.0), depth, f"ln 2 = {log(2.0):.3f}")


def _against_guess(
    process: Process, sample: Sample, guess: float, depth: float, expected: str
) -> Check:
    limit = max(ABOVE * guess, guess + ABOVE_NATS)
    says = f"the first loss is {sample.loss:.4g}; guessing costs {expected}"
    cited = cite_record(
        process, sample.line, says, step=sample.step, loss=sample.loss, expected=guess
    )
    if sample.loss > limit and depth > limit:
        why = f"{says}: the model is sure and wrong before it has learnt anything"
        fix = "look at the scale of the inputs and of the last layer: logits should begin near 0"
        return _failed(FIRST_LOSS, why, Severity.MEDIUM, fix, cited)
    if sample.loss > NEAR * guess and sample.loss > guess + 1.0:
        return unjudged(*FIRST_LOSS, f"{says}; a sum, a weight or wide logits raise it", cited)
    if sample.loss < guess / NEAR:
        return passed(*FIRST_LOSS, f"{says}: it begins with something learnt", cited)
    return passed(*FIRST_LOSS, says, cited)


def _regression_start(process: Process, sample: Sample, given: LossInput) -> Check:
    target, seen = given.target, given.prediction
    if target is None or not isfinite(target.mean) or not isfinite(seen.std):
        return unjudged(*FIRST_LOSS, "the targets of the squared error were not seen")
    expected = target.mean**2 + target.std**2
    size = max(abs(target.mean), target.std)
    output = max(abs(seen.mean), seen.std)
    says = f"the first loss is {sample.loss:.4g}; an output of 0 would cost {expected:.4g}"
    cited = cite_record(process, sample.line, says, step=sample.step, loss=sample.loss)
    if output > max(LARGE_OUTPUT, ABOVE * size) and sample.loss > ABOVE**2 * expected:
        why = f"{says}: outputs have a size of {output:.3g}, targets of {size:.3g}"
        fix = "look at the scale of the inputs and of the last layer: outputs should begin near 0"
        return _failed(FIRST_LOSS, why, Severity.MEDIUM, fix, cited)
    if sample.loss > ABOVE**2 * expected or sample.loss < expected / ABOVE**2:
        return unjudged(*FIRST_LOSS, f"{says}; another scale, a sum or a weight may be why", cited)
    return passed(*FIRST_LOSS, says, cited)


def _failed(
    what: tuple[str, str], says: str, severity: Severity, fix: str, *evidence: Evidence
) -> Check:
    return Check(*what, Outcome.FAILED, says, evidence, severity, fix)


# --- one batch ------------------------------------------------------------------------------------

ONE_BATCH = ("one-batch", "one batch can be overfitted")


def one_batch(run: Run, applied: int) -> Check:
    """Say whether the loss falls when the same batch comes again and again."""
    if not applied:
        return unjudged(*ONE_BATCH, "the data does not come through a DataLoader")
    loss = run.objective()
    if loss is None or len(loss) < 2:
        return unjudged(*ONE_BATCH, "there is no single loss that training should lower")
    first, last = float(loss.values[0]), float(np.median(loss.values[-5:]))
    says = f"on one batch the loss goes from {first:.4g} to {last:.4g} in {_steps(loss)} steps"
    cited = cite(loss, says, 0, -1, first=first, last=last)
    if not isfinite(first) or first <= 0:
        return unjudged(*ONE_BATCH, f"{says}; a loss that may be negative has no known floor")
    base = min(first, _guess(run))  # a start far above guessing is no measure
    if isfinite(last) and last <= FIT * base:
        return passed(*ONE_BATCH, says, cited)
    doubt = _doubt_on_one_batch(run, loss)
    if doubt:
        return unjudged(*ONE_BATCH, f"{says}; {doubt}", cited)
    if not isfinite(last) or _is_stuck(loss, base, last):
        fix = "check the learning rate, the labels, and that gradients reach the weights"
        why = f"{says}: what cannot learn one batch cannot learn the rest"
        return _failed(ONE_BATCH, why, Severity.HIGH, fix, cited)
    return unjudged(*ONE_BATCH, f"{says}: it learns, and is not done", cited)


def _steps(loss: Series) -> int:
    """Return how many steps a loss spans; a recorder in a hurry leaves some out."""
    return int(loss.steps[-1] - loss.steps[0]) + 1


def _is_stuck(loss: Series, base: float, last: float) -> bool:
    late = loss.values[len(loss) // 2 :]
    return last > STUCK * base and slope_z(late) > NO_TREND


def _are_updates_small(run: Run) -> bool:
    samples = [s for p in processes_of(run)[:1] for s in p.samples]
    ratios = [r for s in samples for r in s.update_ratios if r is not None and isfinite(r)]
    return bool(ratios) and float(np.median(ratios)) < NOTICEABLE


def _guess(run: Run, or_else: float = float("inf")) -> float:
    """Return the loss of guessing, or something else where it is not known."""
    _, sample = _first_sample(run)
    if sample is None or len(sample.losses) != 1:
        return or_else
    given = sample.losses[0]
    if given.loss in BINARY_LOSSES:
        return log(2.0)
    if given.loss in SQUARED_LOSSES and given.target is not None:
        return given.target.mean**2 + given.target.std**2
    is_known = given.loss in CLASS_LOSSES and given.classes > 1
    return log(given.classes) if is_known else or_else


def _doubt_on_one_batch(run: Run, loss: Series) -> str:
    """Return what else than a fault would keep the loss up; nothing if nothing known does."""
    if _steps(loss) < FEWEST_STEPS:
        return "that is few steps"
    rates = run.get("lr")
    if rates is not None and len(rates) > 1 and rates.values[-1] > 1.05 * rates.values[0]:
        return "the learning rate is still warming up"
    given = [s.losses[0] for p in processes_of(run)[:1] for s in p.samples if s.losses]
    targets = [i.target for i in given if i.target is not None]
    if float(loss.values[0]) < BEGUN * _guess(run, or_else=0.0):
        return "it begins with something learnt"
    if _are_updates_small(run):
        return "the updates are too small to show in so few steps"
    kinds = (*CLASS_LOSSES, *BINARY_LOSSES, *REGRESSION_LOSSES)
    if len(targets) < 2 or any(i.loss not in kinds for i in given):
        return "the loss is of a kind with no known floor"
    if any(not _is_alike(targets[0], t) for t in targets[1:]):
        return "the targets are drawn anew at every step"
    return ""


def _is_alike(one: Summary, other: Summary) -> bool:
    return one.shape == other.shape and abs(one.mean - other.mean) <= 1e-6 * (1 + abs(one.mean))


# --- parameters -----------------------------------------------------------------------------------

PARAMETERS = ("parameters", "every parameter gets a gradient and moves")


def parameters(run: Run) -> Check:
    """Say which parameters that are to be trained get no gradient or do not move."""
    for process in processes_of(run)[:1]:
        if process.counts is not None and process.counts.has_moved is False:
            return _nothing_moves(process)
        traces = [t.of_owner() for t in traces_of(process) if _is_trained(t)]
        seen = [t for t in traces if len(t.samples) >= ENOUGH_SAMPLES]
        if not seen:
            break
        idle = [t for t in seen if not t.is_reached and not t.has_moved]
        still = [t for t in seen if t.has_gradient and t.is_known_still]
        return _told(process, seen, idle, still)
    return unjudged(*PARAMETERS, "too few steps of an optimizer were looked at closely")


def _is_trained(trace: Trace) -> bool:
    is_meant = trace.is_owned and trace.parameter.is_trainable
    return is_meant and not FOLLOWERS.search(trace.name)


def _nothing_moves(process: Process) -> Check:
    counts = process.counts
    assert counts is not None
    says = f"no weight has changed in {counts.backwards} backward passes and {counts.steps} steps"
    if counts.backwards + counts.steps < 2 * ENOUGH_SAMPLES:
        return unjudged(*PARAMETERS, f"{says}: that is few")
    if _has_no_rate(process):
        return unjudged(*PARAMETERS, f"{says}, at a learning rate that is still 0")
    fix = "check that optimizer.step() is called, and with the parameters of this model"
    cited = cite_record(process, counts.line, says, steps=counts.steps)
    return _failed(PARAMETERS, says, Severity.CRITICAL, fix, cited)


def _has_no_rate(process: Process) -> bool:
    """Tell whether the rate is 0 for now: a warm-up begins there."""
    groups = [g for o in latest_optimizers(process) for g in o.groups]
    return bool(groups) and all(not g.get("lr") for g in groups)


def _told(process: Process, seen: list[Trace], idle: list[Trace], still: list[Trace]) -> Check:
    model = next(iter(latest_models(process)), None)
    line = model.line if model is not None else 0
    lacking = [*idle, *still]
    well = f"{len(seen) - len(lacking)} of {len(seen)} get a gradient and move"
    if not lacking:
        return passed(*PARAMETERS, well, cite_record(process, line, well, parameters=len(seen)))
    without = f"no gradient for {named(idle)}" if idle else f"{named(still)} did not move"
    part = share(lacking, seen)
    says = f"{well}; {without} ({part:.1%} of the numbers)"
    cited = cite_record(process, line, says, share=part)
    if part > MOST:
        fix = "use these layers in forward, or see what cuts the graph between them and the loss"
        return _failed(PARAMETERS, says, Severity.HIGH, fix, cited)
    if part < NEGLIGIBLE:
        return passed(*PARAMETERS, says, cited)
    return unjudged(*PARAMETERS, f"{says}: freeze or remove it unless it serves later", cited)


# --- inputs ---------------------------------------------------------------------------------------

INPUTS = ("inputs", "inputs are normalised")


def inputs(run: Run, raw: Iterable[Evidence] = ()) -> Check:
    """Say how inputs are scaled; `raw` is what shows that the first layer gets them unscaled."""
    shown = tuple(raw)
    if shown:
        fix = "subtract the mean and divide by the spread of the training data; pixels by 255"
        return _failed(INPUTS, shown[0].says, Severity.MEDIUM, fix, *shown)
    for process in processes_of(run)[:1]:
        for sample in process.samples[:1]:
            return _scaled(process, sample)
    return unjudged(*INPUTS, "no batch was seen")


def _scaled(process: Process, sample: Sample) -> Check:
    tables = [b for b in sample.batch if "float" in b.dtype and len(b.shape) > 1]
    if not sample.batch:
        return unjudged(*INPUTS, "no batch came from a DataLoader")
    whole = [b for b in sample.batch if is_integer(b) and len(b.shape) > 1]
    if not tables:
        what = "whole numbers: ids, or bytes that are scaled later" if whole else "no table"
        return unjudged(*INPUTS, f"the batch holds {what}")
    given = tables[0]
    name = "the input" if given.name.isdigit() else given.name or "the input"
    says = f"{name} has mean {given.mean:.3g} and spread {given.std:.3g}"
    cited = cite_record(process, sample.line, says, mean=given.mean, std=given.std)
    if given.nonfinite:
        why = f"{given.nonfinite} values of the first batch are no numbers"
        fix = "drop or fill them where the data is read"
        return _failed(INPUTS, why, Severity.CRITICAL, fix, cited)
    if max(abs(given.mean), given.std) >= RAW:
        return unjudged(*INPUTS, f"{says}; they may be scaled before the first layer", cited)
    return passed(*INPUTS, says, cited)


# --- determinism ----------------------------------------------------------------------------------

SAME_TWICE = ("determinism", "the same seed gives the same losses")
_SEEDING = ("manual_seed(", "seed_everything(", "set_seed(", "enable_full_determinism(")


def determinism(first: Run, second: Run) -> Check:
    """Compare the losses of two reruns with the same seed, bit for bit."""
    one, other = _recorded_losses(first), _recorded_losses(second)
    pairs = [_aligned(one[name], other[name]) for name in one if name in other]
    compared = min((len(a) for a, _ in pairs), default=0)
    if not compared:
        return unjudged(*SAME_TWICE, "no losses of two reruns to compare")
    parted = [(a, b, at) for a, b in pairs if (at := _parting(a, b)) is not None]
    if not parted:
        says = f"two reruns agree bit for bit in all {compared} steps compared"
        return passed(*SAME_TWICE, says, cite(pairs[0][0], says, 0, compared - 1))
    a, b, at = min(parted, key=lambda p: p[2])
    gap = abs(float(a.values[at]) - float(b.values[at])) / max(abs(float(a.values[at])), 1e-12)
    says = f"two reruns part at {a.when(at)}: {a.values[at]:.9g} and {b.values[at]:.9g}"
    cited = cite(a, says, at, gap=gap)
    if is_seeded(first) and at == 0 and gap > SAME:
        why = f"{says}, although the program sets a seed"
        fix = "seed what is drawn before that call, and workers, numpy and random as well"
        return _failed(SAME_TWICE, why, Severity.LOW, fix, cited)
    return unjudged(*SAME_TWICE, f"{says}; fine unless runs are to be repeated exactly", cited)


def _recorded_losses(run: Run) -> dict[str, Series]:
    """Return the losses that were recorded; those that were printed came at steps of their own."""
    recorded = {p.path for p in processes_of(run)}
    known = [n for n, s in run.series.items() if s.origin.artifact in recorded]
    return {
        name: series
        for name in sorted(known)
        if name.startswith("loss/train") and (series := run.get(name)) is not None
    }


def _aligned(a: Series, b: Series) -> tuple[Series, Series]:
    """Return the steps that both tell of; a recorder in a hurry leaves some out."""
    _, mine, yours = np.intersect1d(a.steps, b.steps, return_indices=True)
    return a.take(mine), b.take(yours)


def _parting(a: Series, b: Series) -> int | None:
    one, other = a.values, b.values
    differ = np.flatnonzero((one != other) & ~(np.isnan(one) & np.isnan(other)))
    return int(differ[0]) if len(differ) else None


def is_seeded(run: Run) -> bool:
    """Tell whether the program sets a seed itself."""
    return any(word in source.text for source in run.sources for word in _SEEDING)
