"""The labels that enter a loss, and the predictions beside them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan, log
from statistics import median

from traindx.analysis.metrics.scores import LATE_SCORES
from traindx.analysis.recordings.observations import (
    Term,
    count,
    is_integer,
    largest_share,
    last_step,
    medians,
    rows,
)
from traindx.model.findings import Evidence, Strength, cite_record, suggested
from traindx.model.recording import LossInput, Process, Sample, Summary
from traindx.model.run import Run

BATCH_LABELS = 8  # of a batch: of one class by chance once in thousands of batches
CLASS_LOSSES = ("cross_entropy", "nll_loss")
LABEL_SAMPLES = 5  # samples
RETURNS = 3  # classes that come back: one may be a task that is replayed
LABELS_SEEN = 100
WIDTH = 4  # outputs per class that the data name; contrast with a queue has thousands
DUPLICATES = 0.02  # of the examples of the first pass that had come before in the same pass
ENTROPY_LABELS = 200  # labels
LISTED = 20  # classes that a record names; of more, some are left out
CHANGE_SAMPLES = 2  # samples on either side
CHANGE_LABELS = 40  # on either side: a class that is there is among them
LEAST = 0.15  # of the steps on either side
SHARE = 0.02  # of the other side: a class rarer than this may be missing by chance
COUNTED_EXAMPLES = 16  # of a batch
MISTAKEN = 0.25  # of the examples of a batch
CHEAP = 0.6  # of what these mistakes cost at least, if every example counts alike
FAVOURED = 0.2  # of the examples: by how much more often one class is predicted than it is there
COMMON = 0.5  # of the median class: a class that is rarer is weighted for a reason
MARKED = 0.5  # of the targets that are not counted
GAP_LABELS = 200  # labels of which a class that is trained would be one
SKEWED = 10.0  # the most frequent class over the median one, or that over the rarest
ONE = 0.99  # of the predictions of a batch
ANSWERED_EXAMPLES = 16


def batch_labels(sample: Sample) -> Mapping[str, int]:
    """The classes of the batch, where one loss over classes was given enough of them."""
    losses = [i for i in sample.losses if i.loss in CLASS_LOSSES]
    if len(sample.losses) != 1 or not losses or losses[0].classes < 2:
        return {}
    return losses[0].labels if sum(losses[0].labels.values()) >= BATCH_LABELS else {}


def come_again(batches: Sequence[tuple[Sample, Mapping[str, int]]]) -> bool:
    """Tell whether classes of a batch return after batches without them, as in another pass."""
    found = 0
    leaders = [largest_share(labels)[0] for _, labels in batches]
    for i, leader in enumerate(leaders):
        before = leaders[:i]
        found += leader in before and before[-1] != leader
    return found >= RETURNS


def only_batch_label(samples: list[Sample]) -> str | None:
    """Return the one label that the loader gave in all samples."""
    found: set[str] = set()
    for sample in samples:
        losses = [i for i in sample.losses if i.loss in CLASS_LOSSES]
        if len(sample.losses) != 1 or not losses or losses[0].classes < 2:
            return None
        given = [b for b in sample.batch if is_integer(b) and len(b.shape) == 1]
        if len(given) != 1 or rows(given[0].shape) < BATCH_LABELS or given[0].low != given[0].high:
            return None
        found |= set(losses[0].labels)
        if set(losses[0].labels) != {str(int(given[0].low))}:
            return None
    return next(iter(found)) if len(found) == 1 else None


def only_label(term: Term) -> str | None:
    """Return the one label that entered the loss, where enough of them were seen."""
    labels = term.labels()
    is_seen = (
        len(term) >= LABEL_SAMPLES and labels.total() >= LABELS_SEEN and term.inputs[0].classes > 1
    )
    return next(iter(labels)) if is_seen and len(labels) == 1 else None


def varied_labels(term: Term) -> tuple[Sample, Summary] | None:
    """A tensor of the batch that looks like the labels of these classes and is not constant."""
    for sample, given in term.pairs():
        for part in sample.batch:
            is_labels = is_integer(part) and part.low >= 0 and part.high < given.classes
            is_alike = given.target is None or part.shape[:1] == given.target.shape[:1]
            fits = given.classes <= WIDTH * (part.high + 1)
            if is_labels and is_alike and len(part.shape) == 1 and part.std > 0 and fits:
                return sample, part
    return None


def is_labelled_pair(sample: Sample) -> bool:
    """A batch of one input and its label: with two inputs the label belongs to both."""
    inputs = [b for b in sample.batch if "float" in b.dtype]
    labels = [b for b in sample.batch if is_integer(b)]
    is_plain = len(inputs) == 1 and len(labels) == len(sample.batch) - 1 <= 1
    classes = [i for i in sample.losses if i.loss in ("cross_entropy", "nll_loss")]
    targets = [i.target.shape for i in classes if i.target is not None]
    shape = labels[0].shape if labels else inputs[0].shape[:1] if inputs else ()
    return is_plain and shape in targets


def has_duplicates(process: Process, samples: list[Sample]) -> bool:
    """Tell whether examples came again within the first pass over the data."""
    sizes = [x.batches for x in process.loaders if x.batches]
    if not sizes:
        return True  # without the length of a pass a duplicate looks the same
    first = [s for s in samples if s.step < max(sizes)]
    again = sum(s.repeated + s.relabelled for s in first)
    given = sum(s.batch[0].shape[0] for s in first)
    return again > DUPLICATES * given


def label_entropy(term: Term) -> float | None:
    """Return the entropy of the labels, where all classes are named and enough were seen."""
    counts = term.labels()
    total = counts.total()
    is_whole = total >= ENTROPY_LABELS and len(counts) > 1 and term.inputs[0].classes <= LISTED
    return -sum(n / total * log(n / total) for n in counts.values()) if is_whole else None


def class_change(term: Term) -> int | None:
    """The position from which on no label of before comes again, and no later one came before."""
    if any(i.classes < 3 or len(i.labels) >= LISTED for i in term.inputs):
        return None
    end = last_step(term.process)
    for after in range(CHANGE_SAMPLES, len(term) - CHANGE_SAMPLES + 1):
        first, second = term.samples[0].step, term.samples[after].step
        if second - first < LEAST * end or end - second < LEAST * end:
            continue
        if _are_other_classes(term.labels(0, after), term.labels(after)):
            return after
    return None


def _are_other_classes(early: Counter[str], late: Counter[str]) -> bool:
    if min(early.total(), late.total()) < CHANGE_LABELS or len(early | late) < 3 or early & late:
        return False
    is_common = (min(c.values()) >= SHARE * c.total() for c in (early, late))
    return all(is_common)


def class_words(labels: Counter[str]) -> str:
    """Return the names of classes for a claim, the rest as dots."""
    names = sorted(labels, key=lambda c: (len(c), c))
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")


def prediction_count(given: LossInput) -> int:
    """The number of predictions of a batch; of a binary loss every output is one."""
    shape = given.prediction.shape
    per = given.classes if given.loss in ("cross_entropy", "nll_loss") else 1
    counted = sum(given.predictions.values())
    return min(counted, count(shape) // per) if shape else counted


def is_counted(sample: Sample) -> bool:
    """Tell whether every example of the batch has a label and a prediction that are known.

    Of tokens and pixels some are padding, and answers there cost nothing by design.
    """
    given = sample.losses[0]
    sizes = {sum(given.labels.values()), sum(given.predictions.values())}
    sizes |= {rows(b.shape) for b in sample.batch if b.shape}
    is_whole = bool(sample.batch) and len(sizes) == 1 and min(sizes) >= COUNTED_EXAMPLES
    is_few = 2 <= given.classes <= LISTED
    return given.loss in CLASS_LOSSES and is_few and is_whole and not given.ignored > 0.0


def least_mistakes(given: LossInput) -> float:
    """The least share of wrong answers that leads from these labels to these predictions."""
    size = sum(given.labels.values())
    right = sum(min(n, given.predictions.get(c, 0)) for c, n in given.labels.items())
    return 1.0 - right / size


def is_cheap(sample: Sample) -> bool:
    """Tell whether many predictions are wrong, in favour of one class, at too low a loss."""
    given = sample.losses[0]
    wrong, favourite = least_mistakes(given), favourite_class(given)
    size = sum(given.labels.values())
    over = (given.predictions[favourite] - given.labels.get(favourite, 0)) / size
    return wrong >= MISTAKEN and over >= FAVOURED and 0.0 <= sample.loss < CHEAP * wrong * log(2)


def favourite_class(given: LossInput) -> str:
    """Return the class that is predicted most often."""
    return largest_share(given.predictions)[0]


def is_common(favourite: str, told: Sequence[Sample]) -> bool:
    """Tell whether a class is about as frequent as the others."""
    counts: Counter[str] = Counter()
    for sample in told:
        counts.update(sample.losses[0].labels)
    return counts[favourite] >= COMMON * median(counts.values())


def has_one_label_each(sample: Sample) -> bool:
    """Tell whether every example of the batch has one label, and every label counts."""
    given = sample.losses[0]
    examples = {rows(s.shape) for s in sample.batch}
    is_counted = isnan(given.ignored) or given.ignored == 0
    is_table = len(given.prediction.shape) == 2 and rows(given.prediction.shape) in examples
    return is_counted and is_table


def are_class_labels(term: Term) -> bool:
    """Tell a task of few classes from contrast within a batch and from marks to be ignored."""
    seen = {c for i in term.inputs for c in i.labels}
    is_counted = not any(i.ignored > MARKED for i in term.inputs)
    return is_counted and len(seen) > 1 and term.inputs[0].classes <= LISTED


def classes_of_only_loss(sample: Sample) -> set[int]:
    """Return the number of classes of the only loss of a step; none fits where there are others."""
    is_only = len(sample.losses) == 1 and sample.losses[0].loss in CLASS_LOSSES
    return {sample.losses[0].classes} if is_only else {0, 1}


def late_loss(run: Run, late: Term) -> float:
    """The middle of the last quarter of the loss, or of its late samples."""
    loss = run.objective()
    values = [] if loss is None else loss.finite().values.tolist()
    is_enough = len(values) >= 4 * LATE_SCORES
    return medians(values[-len(values) // 4 :] if is_enough else (s.loss for s in late.samples))


def causes_of_gap(process: Process, term: Term) -> tuple[dict[str, Strength], tuple[Evidence, ...]]:
    """What the labels of training make of the gap."""
    open_question = suggested(
        moderate="overfitting distribution-shift", weak="preprocessing-mismatch class-imbalance"
    )
    counts = term.labels()
    classes = max(i.classes for i in term.inputs)
    if counts.total() < GAP_LABELS:
        return open_question, ()
    ordered = sorted(counts.values(), reverse=True)
    ordered += [0] * (classes - len(ordered))
    middle = ordered[len(ordered) // 2]
    names = ", ".join(f"{n} × class {c}" for c, n in counts.most_common(LISTED))
    seen = cite_record(process, term.samples[0].line, f"labels in the sampled batches: {names}")
    is_led = len(counts) > 1 and ordered[0] > SKEWED * middle
    if not is_led and ordered[-1] == 0 and middle > 0:
        return {**open_question, "distribution-shift": Strength.STRONG}, (seen,)
    if is_led or middle > SKEWED * ordered[-1]:
        return {**open_question, "class-imbalance": Strength.STRONG}, (seen,)
    return open_question, ()


def one_late_answer(late: Term) -> tuple[str, float] | None:
    """Return the one class that late batches are nearly all predicted to be, and its least share.

    In a small batch a single answer is no surprise.
    """
    chosen = [largest_share(i.predictions, prediction_count(i)) for i in late.inputs]
    answers, least = {answer for answer, _ in chosen}, min(share for _, share in chosen)
    is_small = min(map(prediction_count, late.inputs)) < ANSWERED_EXAMPLES
    return None if len(answers) != 1 or least < ONE or is_small else (chosen[0][0], least)
