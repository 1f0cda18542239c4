"""Every layer of the untrained model makes its signal larger."""

from dataclasses import replace
from itertools import pairwise
from math import isfinite, log, sqrt

from traindx.analysis.recordings.observations import late_samples, processes_of
from traindx.analysis.recordings.traces import latest_models
from traindx.examples import recorded
from traindx.model.findings import Finding, Strength, cite_record, finding
from traindx.model.recording import (
    Activation,
    LossInput,
    Model,
    Parameter,
    Process,
    Sample,
    Summary,
)
from traindx.registry import Findings, Run, detector

CAUSE = "exploding-activations"
PER_LAYER = 2.0  # times; sound initialisation keeps the spread, or halves it
LARGE = 10.0  # the spread at the top
LAYERS = 3
SQUARES = 10.0  # the first loss over the mean square of the targets: answering 0 costs 1
SOUND = 2.0  # how much of a spread a weight matrix passes on; the root of two is Kaiming's
GUESS = 2.0  # the first loss over that of a guess
LATE_SAMPLES = 2
CALM = 5.0  # the largest spread of a model that has shrunk what it amplified
LEARNT = 0.8  # of the loss of a guess


@detector(needs=("recording",), suggests=(CAUSE, "bad-initialisation"))
def check(run: Run) -> Findings:
    """From layer to layer the spread doubles or more, and the first loss is far beyond a guess.

    ## What it detects
    The first sample of an untrained model whose layers are each given a larger spread than the one
    before, twofold per layer and more on average, up to ten and more; and whose first loss is ten
    times the mean square of the targets, or twice the loss of a guess.

    ## Why it matters
    Initial weights are made so that a layer keeps the scale of its input. What is multiplied in
    every layer is multiplied in the gradients too: the first steps are far too large, and depth
    ends in overflow.

    ## What to do
    Look for a factor in the forward pass or in the initialisation; normalise (layer norm before
    each block), scale residual branches by one over the root of their number.

    ## When it is wrong
    Inputs on a raw scale enter large and are not amplified; a residual stream grows by a few times
    over its whole depth. Both are left alone, and so is a loss that begins where it should. In
    training the weights may shrink until the spread is usual in every layer; if the loss is then
    below that of a guess, the model has outgrown it, and nothing is said.
    """
    for process in processes_of(run):
        first = process.samples[0] if process.samples else None
        if first is None or first.step > 0:
            continue
        for model in latest_models(process):
            layers = _in_order(model, first)
            is_amplified = len(layers) >= LAYERS and _is_amplified(layers)
            if is_amplified and _is_far_off(first) and not _is_outgrown(process):
                yield _finding(process, first, layers)
                return


def _in_order(model: Model, sample: Sample) -> list[Activation]:
    """The inputs of layers in the order of the model; nothing if that of the first is unknown."""
    matrices = [p.name.rpartition(".")[0] for p in model.parameters if len(p.shape) >= 2]
    given = {a.name: a for a in sample.activations if a.op.startswith("input of") and a.std > 0}
    known = [given[name] for name in dict.fromkeys(matrices) if name in given]
    return known if known and matrices and known[0].name == matrices[0] else []


def _is_amplified(layers: list[Activation]) -> bool:
    low, high = layers[0].std, layers[-1].std
    is_rising = all(a.std < b.std for a, b in pairwise(layers))
    return is_rising and high >= LARGE and high / low >= PER_LAYER ** (len(layers) - 1)


def _is_outgrown(process: Process) -> bool:
    """Tell whether late in training no layer is given a large spread, and the loss is learnt."""
    late = late_samples(process)
    spreads = [a.std for s in late for a in s.activations if a.op.startswith("input of")]
    has_learnt = all(s.loss < LEARNT * guess for s in late if (guess := _guess(s)) is not None)
    is_told = len(late) >= LATE_SAMPLES and any(_guess(s) is not None for s in late)
    return is_told and has_learnt and bool(spreads) and all(a < CALM for a in spreads)


def _guess(sample: Sample) -> float | None:
    """What a model that knows nothing would have as the only loss of the sample, if known."""
    given = sample.losses[0] if len(sample.losses) == 1 else None
    if given is not None and given.loss in ("cross_entropy", "nll_loss") and given.classes >= 2:
        return log(given.classes)
    if given is not None and given.loss == "mse_loss" and given.target is not None:
        return given.target.mean**2 + given.target.std**2
    return None


def _is_far_off(sample: Sample) -> bool:
    """Tell whether the only loss of the sample is far above that of a model that knows nothing."""
    guess = _guess(sample)
    if guess is None or not isfinite(sample.loss):
        return False
    return sample.loss > (SQUARES if sample.losses[0].loss == "mse_loss" else GUESS) * guess > 0.0


def _finding(process: Process, first: Sample, layers: list[Activation]) -> Finding:
    low, high = layers[0], layers[-1]
    suggests = {CAUSE: Strength.STRONG}
    if not _are_weights_sound(process, first):
        suggests["bad-initialisation"] = Strength.MODERATE
    says = "at initialisation the standard deviation of the layers' inputs is " + ", ".join(
        f"{a.std:.3g} ({a.name})" for a in (*layers[:3], *layers[3:][-1:])
    )
    return finding(
        f"Activations explode in the untrained model: their standard deviation rises from "
        f"{low.std:.2g} to {high.std:.2g} over {len(layers)} layers; the first loss is "
        f"{first.loss:.3g}",
        suggests,
        cite_record(process, first.line, says, step=0.0, first_loss=first.loss),
    )


def _are_weights_sound(process: Process, first: Sample) -> bool:
    """Tell whether the weights keep a spread, so that something else in the model amplifies it."""
    shapes = {p.name: p.shape for m in latest_models(process) for p in m.parameters}
    gains = [
        norm / sqrt(shape[0])
        for name, norm in zip(first.names, first.weight_norms, strict=False)
        if len(shape := shapes.get(name, ())) >= 2 and isfinite(norm)
    ]
    return bool(gains) and max(gains) < SOUND


def _run(
    *spreads: float, loss: float = 490.0, step: int = 0, classes: int = 0, later: float = 0.0
) -> Run:
    names = [f"l{i}" for i in range(len(spreads))]
    model = Model(1, type="Net", parameters=tuple(Parameter(f"{n}.weight", (8, 8)) for n in names))
    layers = [Activation(n, "input of addmm", std=s) for n, s in zip(names, spreads, strict=True)]
    kind = "cross_entropy" if classes else "mse_loss"
    given = LossInput(kind, target=Summary(mean=0.0, std=1.0), classes=classes)
    sample = Sample(2, step, loss=loss, activations=tuple(layers[::-1]), losses=(given,))
    calmed = tuple(replace(a, std=later) for a in sample.activations)
    late = (replace(sample, step=i, loss=0.4, activations=calmed) for i in (500, 700, 900))
    return recorded(Process(models=(model,), samples=(sample, *(late if later else ()))))


FIRES = {
    "a factor in every layer": _run(0.7, 2.4, 8.1, 33.0),
    "learnt, and still amplified": _run(0.7, 2.4, 8.1, 33.0, later=13.0),
    "a classifier": _run(0.7, 3.1, 12.0, loss=2.35, classes=2),
}

SILENT = {
    "sound": _run(1.0, 0.6, 0.4, 0.3, loss=1.1),
    "near miss: raw inputs enter large": _run(280.0, 110.0, 60.0),
    "near miss: a residual stream": _run(1.0, 1.4, 2.0, 4.0, 8.0, loss=1.5),
    "near miss: the loss begins where it should": _run(0.7, 2.4, 8.1, 33.0, loss=1.2),
    "near miss: training has shrunk it": _run(0.7, 2.4, 8.1, 33.0, later=1.8),
    "near miss: one wide layer": _run(1.0, 30.0, 12.0, 11.0),
    "near miss: a trained model": _run(0.7, 2.4, 8.1, 33.0, step=500),
}
