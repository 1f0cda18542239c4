"""Predictions beside the targets that a loss compares them with."""

from collections.abc import Sequence
from math import hypot, isfinite, log

from traindx.analysis.recordings.observations import (
    Term,
    extreme,
    is_integer,
    is_sound,
    late_samples,
    medians,
    operation,
    rows,
)
from traindx.model.recording import LossInput, Model, Process, Sample, Shape, Summary

CLIPS = ("relu", "relu6", "threshold", "clamp", "clamp_min", "clamp_max", "hardtanh", "clip")
BATCH_EXAMPLES = 8
CONSTANT = 0.01  # of the spread of the targets; a model that explains 1 % of it has ten times that
OUTPUT_RANGES = {
    "sigmoid": (0.0, 1.0), "hardsigmoid": (0.0, 1.0), "softmax": (0.0, 1.0),
    "tanh": (-1.0, 1.0), "hardtanh": (-1.0, 1.0), "softsign": (-1.0, 1.0),
}  # fmt: skip
BEYOND = 0.5  # of the range; a target may be a little outside, from noise or rounding
RAW_TARGET = 1000.0  # of the size of targets; an untrained network gives about one
FAR = 0.1  # of the size of the targets; outputs that stay below it have not got there
LARGEST = frozenset({"max", "amax", "topk"})
SQUARED = "mse_loss"
UNIFORM = 0.1  # how far log-probabilities may be from those of a model that knows nothing
FLAT = 0.02  # the spread of predictions over that of their targets
PROBABLE_SAMPLES = 3  # samples; the rows of one may sum to one by chance
HARMLESS = ("log_softmax",)
LARGE_TARGET = 10.0  # targets that are larger need large weights
LEFT_OF_GUESS = 0.3  # of the loss of a guess
DOMINANT = 5.0  # the loss over the most that the term with the targets can be
RULED_SAMPLES = 4


def is_clipped(given: LossInput) -> bool:
    """Tell whether one value stands for all examples, and the targets differ."""
    prediction, target = given.prediction, given.target
    is_clip = operation(given.producer) in CLIPS
    is_flat = prediction.low == prediction.high and rows(prediction.shape) >= BATCH_EXAMPLES
    return is_sound(given) and is_clip and is_flat and target is not None and target.std > 0.0


def is_constant_column(given: LossInput) -> bool:
    """One column that varies far less than its targets."""
    target, prediction = given.target, given.prediction
    columns = prediction.shape[1:]
    is_column = not columns or columns == (1,)
    if target is None or not is_column or rows(prediction.shape) < BATCH_EXAMPLES:
        return False
    if not isfinite(target.std) or target.std <= 0.0 or target.distinct in (1, 2):
        return False
    return prediction.std < CONSTANT * target.std


def targets_exceed_range(given: LossInput) -> bool:
    """Tell whether the targets go far beyond what the last operation can give."""
    bounds, target = OUTPUT_RANGES.get(operation(given.producer)), given.target
    if bounds is None or target is None or given.prediction.shape != target.shape:
        return False
    low, high = bounds
    room = BEYOND * (high - low)
    is_outside = target.high > high + room or target.low < low - room
    is_inside = low <= given.prediction.low and given.prediction.high <= high
    return is_outside and is_inside and target.std > room


def size_of(summary: Summary | None) -> float:
    """Return the size of the values of a tensor; 0 where there is none."""
    return 0.0 if summary is None else max(abs(summary.mean), summary.std)


def are_raw_targets(term: Term) -> bool:
    """Tell whether all targets of a term are in the thousands or beyond."""
    return all(size_of(i.target) >= RAW_TARGET for i in term.inputs)


def is_far_below_target(given: LossInput) -> bool:
    """Tell whether predictions stay far below the size of their targets."""
    return extreme(given.prediction) < FAR * size_of(given.target)


def is_class_number(sample: Sample, given: LossInput) -> bool:
    """Tell whether the largest of several outputs is compared with class numbers."""
    target = given.target
    if target is None or operation(given.producer) not in LARGEST or not isfinite(target.high):
        return False
    is_whole = (
        target.low >= 0 and float(target.high).is_integer() and float(target.low).is_integer()
    )
    is_few = target.distinct is not None and target.distinct <= target.high - target.low + 1
    has_labels = any(is_integer(b) and b.shape == target.shape for b in sample.batch)
    return is_whole and is_few and has_labels


def output_count(model: Model) -> int:
    """The number of outputs of the last weight matrix."""
    matrices = [p for p in model.parameters if len(p.shape) >= 2]
    return matrices[-1].shape[0] if matrices else 0


def outer_broadcast(given: LossInput) -> tuple[Shape, Shape, Shape] | None:
    """Return the two shapes and what came of them, if it is the pattern of the fault."""
    if len(given.broadcast) != 3:
        return None
    first, second, result = given.broadcast
    n = result[0] if len(result) == 2 else 0
    is_fault = n > 1 and result == (n, n) and {first, second} == {(n, 1), (n,)}
    return (first, second, result) if is_fault else None


def is_of_the_batch(term: Term, met: tuple[Shape, Shape, Shape]) -> bool:
    """A table of as many rows as the batch has is compared with every example on purpose."""
    sizes = {i.broadcast[-1] for i in term.inputs}
    alone = all(len(s.losses) == 1 for s in term.samples)
    batches = {rows(b.shape) for b in term.samples[0].batch if b.shape}
    return alone and (len(sizes) > 1 or met[-1][0] in batches)


def largest_cost(first: Sample, last: Sample) -> float | None:
    """The most that the first batch can cost by its targets; none if that is not known."""
    given = first.losses[0]
    if given.loss == SQUARED:
        bounds = _most_squared(given), _most_squared(last.losses[0])
        # summed or weighted, it is in the end as many times as large as it can be
        return bounds[0] * max(1.0, last.loss / bounds[1]) if all(bounds) else None
    low, size = given.prediction.low, max(1, rows(given.prediction.shape))
    if given.loss not in ("cross_entropy", "nll_loss") or given.classes < 2:
        return None
    if not isfinite(low) or low >= 0:
        return None
    # summed over its examples, the cross-entropy of uniform outputs is as many times as large
    is_summed = last.loss >= 0.5 * size * log(given.classes)
    return -low * (size if is_summed else 1)


def _most_squared(given: LossInput) -> float:
    """The mean square of a difference is at most the square of the sum of both sizes."""
    target = given.target
    if target is None or given.loss != SQUARED:
        return 0.0
    sizes = (hypot(side.mean, side.std) for side in (given.prediction, target))
    bound = sum(sizes) ** 2
    return bound if isfinite(bound) else 0.0


def says_nothing(given: LossInput) -> bool:
    """Tell whether predictions are uniform, or constant where the targets vary."""
    if given.loss == SQUARED and given.target is not None:
        return given.prediction.std < FLAT * given.target.std
    if given.classes < 2:
        return False
    level = -log(given.classes)
    ends = (given.prediction.low, given.prediction.high)
    return all(isfinite(e) and abs(e - level) < UNIFORM for e in ends)


def are_probabilities(term: Term) -> bool:
    """Tell whether the rows of what enters a cross-entropy sum to one in every sample."""
    if len(term) < PROBABLE_SAMPLES or any(operation(i.producer) in HARMLESS for i in term.inputs):
        return False
    return all(
        i.rows_sum_to_one and i.loss == "cross_entropy" and i.classes > 1 for i in term.inputs
    )


def has_large_targets(process: Process) -> bool:
    """Tell whether a regression has targets that need large weights."""
    targets = [i.target for s in process.samples for i in s.losses if i.target is not None]
    return any(
        not is_integer(t) and abs(t.mean) + t.std > LARGE_TARGET for t in targets if isfinite(t.std)
    )


def is_far_from_learnt(late: Sequence[Sample]) -> bool:
    """Tell whether the only loss is a cross-entropy that is far from learnt."""
    given = [s.losses[0] for s in late if len(s.losses) == 1]
    if len(given) < len(late) or any(i.loss != "cross_entropy" or i.classes < 2 for i in given):
        return False
    return medians(s.loss for s in late) > LEFT_OF_GUESS * log(given[-1].classes)


def dominated(process: Process) -> tuple[Sample, Sample, float] | None:
    """Return samples in which another term rules the loss, and its outputs end up saying nothing.

    These are the first and the last, with the most that the term with the targets can be.
    """
    told = [s for s in process.samples if isfinite(s.loss) and len(s.losses) == 1]
    is_scaled = process.counts is not None and process.counts.scaled
    late = [s for s in late_samples(process) if len(s.losses) == 1]
    if is_scaled or len(told) < RULED_SAMPLES or not late:
        return None
    first, last = told[0], late[-1]
    most = largest_cost(first, last)
    if most is None or first.loss < DOMINANT * most or last.loss > 0.5 * first.loss:
        return None
    return (first, last, most) if all(says_nothing(s.losses[0]) for s in late) else None
