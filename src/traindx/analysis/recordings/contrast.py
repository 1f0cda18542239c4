"""Similarities within a batch that a contrastive loss compares."""

from math import isfinite, log, prod, sqrt

from traindx.analysis.recordings.observations import Term, late_from, medians, rows
from traindx.model.recording import LossInput, Sample

ALIKE = 0.1  # between the largest and the smallest log-probability or logit of a batch
AT_CHANCE = 0.02  # of the logarithm of the number of candidates
EXAMPLES = 8  # of a batch
FADED = 1e-3  # of the largest gradient: what half of the parameters get at least
APART = 0.5  # of the spread of vectors of length one that point everywhere
UNIT = 1.5  # times the spread of vectors of length one; longer ones are not normalised


def late_similarities(term: Term) -> Term:
    """The later part of a term; of a row one similarity, that to itself, may be masked."""
    late = term.since(late_from(term.process))
    return term.of((s, i) for s, i in late if i.prediction.nonfinite <= rows(i.prediction.shape))


def point_apart(sample: Sample, given: LossInput) -> bool:
    """Tell whether the vectors that are compared have length one and point everywhere.

    Their values then have a spread of one over the root of their number about a mean near zero.
    """
    size = rows(given.prediction.shape)
    compared = [a for a in sample.activations if a.op.endswith(" of mm") and len(a.shape) == 2]
    compared = [a for a in compared if size in a.shape]
    for a in compared:
        unit = 1.0 / sqrt(max(1, prod(a.shape) // size))
        if APART * unit < a.std < UNIT * unit and abs(a.mean) < a.std:
            return True
    return False


def are_alike(sample: Sample, given: LossInput) -> bool:
    """A square of similarities that says the same of all, below which gradients flow."""
    shape, labels = given.prediction.shape, given.labels
    is_square = len(shape) == 2 and rows(shape) == given.classes >= EXAMPLES
    has_own_labels = len(labels) >= EXAMPLES and max(labels.values(), default=0) == 1
    width = given.prediction.high - given.prediction.low
    chance = log(max(2, given.classes))
    is_at_chance = abs(sample.loss - chance) < AT_CHANCE * chance
    return is_square and has_own_labels and width < ALIKE and is_at_chance and _flows(sample)


def _flows(sample: Sample) -> bool:
    """Tell whether gradients reach most parameters; where they fade, that is the fault."""
    known = [g for g in sample.grad_norms if g is not None and isfinite(g)]
    return bool(known) and medians(known) > FADED * max(known)
