"""Which changes are worth a rerun for this program, in which order, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from traindx.experiments.changes import Change, Intervention, Value
from traindx.experiments.probes.census import OptimizerFacts, ProgramFacts
from traindx.experiments.probes.source_changes import (
    NumberPatch,
    SourceText,
    longer,
    other_batches,
    wider,
)
from traindx.experiments.verification.plans import ADAPTIVE_RATE, USUAL_RATE

LONGER = 3  # times as long
WIDER = 4
MOSTLY = 0.5  # of the steps, that clipping has to act on
LEAST_DECAY = 5e-4  # below it a decay shows in no short run
LOW_RATE = 0.4  # of the highest rate: then a schedule has taken most of it away
OFF_CENTRE, WIDE, NARROW = 0.7, 2.0, 0.5  # of inputs: the mean and the deviations
FAR_INPUTS, WIDE_INPUTS, NARROW_INPUTS = 3.0, 5.0, 0.1  # where it is likely to matter
FAR_TARGETS, NARROW_TARGETS = 2.0, 0.2
ODD_SPREAD = (0.15, 4.0)  # of weights, as a share of what torch gives new ones
SMALL_BATCH, LARGE_BATCH = 16, 32
SPIKY = 8.0  # the largest norm over the usual one
FITTED_RATE = 0.2  # of what is usual: a rate below it may have been made to fit a scale
SCALE_FREE = ("Adam", "RMSprop", "Adagrad", "Adamax", "Lion", "NAdam", "RAdam", "Adadelta")
CLIP_ABOVE = 1.5  # times the usual norm
TWO_CHANGES = 8  # a rank behind all others: where one of the two does as much, the other is idle


@dataclass(frozen=True, slots=True)
class Offer:
    """A change to try, what its help would say, and what there is to know about comparing it.

    `rank` orders causes that explain the same: what is specific stands before what helps anyway.
    """

    key: str
    cause: str
    change: Change
    rank: int
    needs_held_out: bool = False  # fitting better is all that it does to the training data
    needs_score: bool = False  # the loss would change by itself
    needs_end: bool = False  # it shows only where the run ends
    length: float = 1.0  # times the steps of the run as it is
    cost: float = 1.0  # times its time
    next_up: float = 0.0  # the factor that comes after this one in the same direction
    is_likely: bool = False


@dataclass(frozen=True, slots=True)
class Offers:
    """The changes to try, the likeliest first, and those that do not apply, with the reason."""

    tried: tuple[Offer, ...] = ()
    left_out: tuple[tuple[str, str], ...] = field(default_factory=tuple)


def offers_for(
    facts: ProgramFacts,
    sources: Sequence[SourceText],
    command: Sequence[str],
    *,
    is_improving: bool | None,
) -> Offers:
    """Return what is worth a rerun, given what was seen of the program."""
    made: list[Offer] = []
    left_out: list[tuple[str, str]] = []
    for found in _all(facts, sources, command, is_improving=is_improving):
        if isinstance(found, Offer):
            made.append(found)
        else:
            left_out.append(found)
    made.sort(key=lambda o: (not o.is_likely, _ORDER.index(o.key.partition(" ")[0])))
    return Offers(tuple(made), tuple(left_out))


_ORDER = (
    "modes", "clipping", "targets", "inputs", "precision", "master", "initialisation", "rate",
    "decay", "dropout", "smoothing", "schedule", "longer", "shuffle", "batch", "clip", "wider",
)  # fmt: skip


def _all(
    facts: ProgramFacts,
    sources: Sequence[SourceText],
    command: Sequence[str],
    *,
    is_improving: bool | None,
) -> Iterator[Offer | tuple[str, str]]:
    yield from _rates(facts)
    yield from _regularisers(facts)
    yield from _settings(facts)
    yield from _data(facts)
    yield from _batches(facts, sources, command)
    yield from _lengths(sources, command, is_improving=is_improving)
    yield from _widths(sources, command)


def _change(says: str, name: str, advice: str = "", /, **values: Value) -> Change:
    return Change(says, (Intervention(name, values),), remedy=advice)


# the learning rate


def _rates(facts: ProgramFacts) -> Iterator[Offer | tuple[str, str]]:
    if facts.main is None:
        yield "learning rate", "no optimizer step was seen"
        return
    for factor in (1 / 3, 3.0, 10.0, 1 / 10):
        yield rate_offer(factor, facts.main)


def rate_offer(factor: float, optimizer: OptimizerFacts) -> Offer:
    """Return the offer of another learning rate, with the one that would come next."""
    is_up = factor > 1
    name = f"× {factor:g}" if is_up else f"÷ {1 / factor:g}"
    peak = optimizer.most or optimizer.first
    advice = (
        f"{'Raise' if is_up else 'Reduce'} the learning rate from {peak:.3g} to {peak * factor:.3g}"
    )
    return Offer(
        f"rate {name}",
        "lr-too-low" if is_up else "lr-too-high",
        _change(f"learning rate {name}", "learning-rate", advice, factor=factor),
        rank=5,
        next_up=_next(factor),
        is_likely=factor in (3.0, 10.0, 1 / 3),
    )


def _next(factor: float) -> float:
    if factor >= 9:
        return factor * 10 if factor < 900 else 0.0
    return factor / 10 if 0.001 < factor < 0.2 else 0.0


# regularisation


def _regularisers(facts: ProgramFacts) -> Iterator[Offer | tuple[str, str]]:
    decay = max((o.decay for o in facts.optimizers), default=0.0)
    if decay >= LEAST_DECAY:
        yield Offer(
            "decay", "weight-decay-too-high",
            _change("no weight decay", "weight-decay",
                    f"Set weight_decay from {decay:g} to 0", value=0),
            rank=1, needs_held_out=True, is_likely=decay >= 0.05,
        )  # fmt: skip
    else:
        yield "no weight decay", f"weight decay is {decay:g}"
    if facts.dropout > 0:
        yield Offer(
            "dropout", "excessive-regularisation",
            _change("no dropout", "dropout", f"Lower dropout from {facts.dropout:g}", value=0.0),
            rank=1, needs_held_out=True, is_likely=facts.dropout > 0.4,
        )  # fmt: skip
    else:
        yield "no dropout", "there is none"
    if facts.smoothing > 0:
        yield Offer(
            "smoothing", "excessive-regularisation",
            _change("no label smoothing", "label-smoothing",
                    f"Lower label_smoothing from {facts.smoothing:g}", value=0.0),
            rank=1, needs_held_out=True, needs_score=True, is_likely=facts.smoothing > 0.3,
        )  # fmt: skip
    else:
        yield "no label smoothing", "there is none"


# settings of the loop


def _settings(facts: ProgramFacts) -> Iterator[Offer | tuple[str, str]]:
    yield from _clipping(facts)
    rate = facts.main
    if rate is not None and rate.most > 0 and min(rate.last, rate.least) < LOW_RATE * rate.most:
        yield Offer(
            "schedule", "lr-schedule-misuse",
            _change("constant learning rate", "learning-rate",
                    f"Keep the learning rate at {rate.most:.3g}, or let it fall later",
                    constant=True),
            rank=1, needs_end=True, is_likely=rate.last < 0.1 * rate.most,
        )  # fmt: skip
    else:
        yield "constant learning rate", "the rate is constant, or nearly so"
    if facts.trained_in_eval or facts.evaluated_in_train:
        cause = "training-in-eval-mode" if facts.trained_in_eval else "validation-in-train-mode"
        says = "train() while training, eval() while evaluating"
        advice = "Call model.train() before each training epoch and model.eval() before evaluating"
        yield Offer("modes", cause, _change(says, "modes", advice), rank=0, is_likely=True)
    else:
        yield "train() and eval() at the right places", "they are, or no layer minds the mode"
    if facts.autocast:
        advice = "Train without autocast, or in bfloat16"
        made = _change("no mixed precision", "full-precision", advice)
        yield Offer("precision", "fp16-overflow", made, rank=1)
    if facts.half_weights:
        advice = "Keep the weights in float32 and use autocast"
        says = "updates in single precision"
        yield Offer("master", "half-precision-weights", _change(says, "master-weights", advice),
                    rank=1, is_likely=True)  # fmt: skip
    if not facts.autocast and not facts.half_weights:
        yield "full precision", "it is in full precision"
    yield from _initialisation(facts)


def _clipping(facts: ProgramFacts) -> Iterator[Offer | tuple[str, str]]:
    share = facts.clipped / facts.clip_calls if facts.clip_calls else 0.0
    if share >= MOSTLY:
        limit = f"{facts.clip_limit:g}" if facts.clip_limit else "its value"
        advice = f"Raise the clipping limit from {limit}, or leave it out"
        yield Offer("clipping", "gradient-clipping-too-tight",
                    _change("no gradient clipping", "no-clipping", advice),
                    rank=1, is_likely=share > 0.9)  # fmt: skip
    elif facts.clip_calls:
        yield "no gradient clipping", f"it acts on {share:.0%} of the steps"
    usual = facts.usual_norm
    if facts.clip_calls or not usual:
        return
    if max(facts.norms) > SPIKY * usual:
        norm = float(f"{CLIP_ABOVE * usual:.2g}")
        advice = f"Clip the gradient norm to {norm:g}"
        yield Offer("clip", "missing-gradient-clipping",
                    _change(f"gradients clipped to {norm:g}", "gradient-clipping", advice,
                            max_norm=norm), rank=4)  # fmt: skip
    else:
        yield "gradient clipping", "no gradient stands out"


def _initialisation(facts: ProgramFacts) -> Iterator[Offer | tuple[str, str]]:
    says = "weights initialised as PyTorch does"
    if facts.has_loaded:
        yield says, "weights were loaded"
        return
    odd = [x for x in facts.layers if not ODD_SPREAD[0] <= x["ratio"] <= ODD_SPREAD[1]]
    if not odd:
        yield says, "their spread is the usual one"
        return
    worst = max(odd, key=lambda x: abs(x["ratio"] - 1))
    spread = f"{worst['type']} has {worst['ratio']:.2g} times its spread"
    advice = f"Leave the initialisation to PyTorch ({spread})"
    yield Offer("initialisation", "bad-initialisation", _change(says, "initialisation", advice),
                rank=1, is_likely=True)  # fmt: skip


# data


def _data(facts: ProgramFacts) -> Iterator[Offer | tuple[str, str]]:
    given = facts.inputs
    if given is None:
        yield "inputs standardised", "inputs are no float features"
    elif given.mean > OFF_CENTRE or given.most > WIDE or given.middle < NARROW:
        is_far = given.mean > FAR_INPUTS or given.most > WIDE_INPUTS
        advice = "Standardise the inputs with the mean and deviation of the training set"
        made = Offer("inputs", "unnormalised-inputs",
                     _change("inputs standardised", "normalise-inputs", advice, strict=True),
                     rank=1, is_likely=is_far or given.middle < NARROW_INPUTS)  # fmt: skip
        yield from (made, *_at_usual_rate(made, facts))
    else:
        yield "inputs standardised", "they are standardised"
    wanted = facts.targets
    if facts.loss_kind != "values" or wanted is None:
        yield "targets standardised", "it is no regression on tensors"
    elif wanted.mean > FAR_TARGETS or wanted.most > FAR_TARGETS or wanted.most < NARROW_TARGETS:
        advice = "Standardise the targets, and scale the predictions back"
        made = Offer("targets", "unnormalised-targets",
                     _change("targets standardised", "standardise-targets", advice),
                     rank=1, is_likely=True)  # fmt: skip
        yield from (made, *_at_usual_rate(made, facts))
    else:
        yield "targets standardised", "they are about standard"
    yield from _order(facts)


def _at_usual_rate(offer: Offer, facts: ProgramFacts) -> Iterator[Offer]:
    """Yield a change of scale with the rate that it allows, where the rate was made to fit."""
    optimizer = facts.main
    if optimizer is None or not offer.is_likely:
        return
    usual = USUAL_RATE.get(optimizer.type.lower(), ADAPTIVE_RATE)
    if optimizer.most < FITTED_RATE * usual:
        says = f"{offer.change.says}, the learning rate at {usual:g}"
        rate = Intervention("learning-rate", {"value": usual})
        made = Change(says, (*offer.change.interventions, rate), remedy=f"{offer.change.remedy}, "
                      f"with a learning rate of {usual:g}")  # fmt: skip
        yield replace(offer, key=f"{offer.key} usual", change=made, rank=TWO_CHANGES)


def _order(facts: ProgramFacts) -> Iterator[Offer | tuple[str, str]]:
    training = [x for x in facts.loaders if not x.get("is_stream")]
    first = training[0] if training else None
    if first is None:
        yield "training data shuffled", "batches do not come from a DataLoader"
    elif first.get("sampler") == "SequentialSampler" and (first.get("size") or 0) > facts.rows:
        advice = "Pass shuffle=True to the training DataLoader"
        yield Offer("shuffle", "unshuffled-training-data",
                    _change("training data shuffled", "shuffle", advice), rank=1,
                    is_likely=True)  # fmt: skip
    else:
        yield "training data shuffled", "it is"


def _batches(
    facts: ProgramFacts, sources: Sequence[SourceText], command: Sequence[str]
) -> Iterator[Offer | tuple[str, str]]:
    optimizer = facts.main
    if optimizer is None or not facts.rows:
        return
    is_free = optimizer.type.startswith(SCALE_FREE)
    for factor, cause in ((4.0, "batch-too-small"), (0.25, "insufficient-training")):
        is_up = factor > 1
        says = f"batches {'× 4' if is_up else '÷ 4'}, the rate scaled"
        if facts.rows > SMALL_BATCH if is_up else facts.rows < LARGE_BATCH:
            yield says, f"a batch has {facts.rows} examples"
            continue
        rate = Intervention("learning-rate", {"factor": factor**0.5 if is_free else factor})
        advice = f"Use batches of {round(facts.rows * factor)}, with the learning rate scaled"
        if facts.loaders:
            made = Change(
                says, (Intervention("batch-size", {"factor": factor}), rate), remedy=advice
            )
            yield Offer(f"batch {factor:g}", cause, made, rank=6, length=1 / factor)
            continue
        found = other_batches(sources, factor, command)
        if found is None:
            yield says, "where batches are made was not found"
            continue
        made = Change(f"{says} ({found.says})", (rate,), found.patch, remedy=advice)
        yield Offer(f"batch {factor:g}", cause, made, rank=6, length=1 / factor)


# length and width


def _lengths(
    sources: Sequence[SourceText], command: Sequence[str], *, is_improving: bool | None
) -> Iterator[Offer | tuple[str, str]]:
    says = f"training {LONGER} times as long"
    if is_improving is False:
        yield says, "the metric has levelled off"
        return
    found = longer(sources, LONGER, command)
    if found is None:
        yield says, "the number that sets its length was not found in the source"
        return
    advice = f"Train longer ({found.says})"
    yield Offer("longer", "insufficient-training", _patched(says, found, advice), rank=7,
                needs_end=True, length=LONGER, cost=LONGER)  # fmt: skip


def _widths(
    sources: Sequence[SourceText], command: Sequence[str]
) -> Iterator[Offer | tuple[str, str]]:
    says = "wider hidden layers"
    found = wider(sources, WIDER, command)
    if found is None:
        yield says, "no small hidden layer was found in the source"
        return
    made = _patched(says, found, f"Widen the model ({found.says})")
    yield Offer("wider", "insufficient-capacity", made, rank=3, needs_held_out=True, cost=1.5)


def _patched(says: str, found: NumberPatch, advice: str) -> Change:
    return Change(f"{says} ({found.says})", patch=found.patch, remedy=advice)
