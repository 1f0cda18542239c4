"""The model before its first step: the scales of its weights and of what its layers are given."""

import re
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, log, prod, sqrt

import numpy as np

from traindx.analysis.recordings.observations import late_samples
from traindx.analysis.recordings.traces import FOLLOWERS, latest_models
from traindx.model.recording import Activation, Model, Parameter, Process, Sample

PER_LAYER = 2.0  # times; sound initialisation keeps the spread, or halves it
AMPLIFIED = 10.0  # the spread at the top
DEEP_ENOUGH = 3
SQUARES = 10.0  # the first loss over the mean square of the targets: answering 0 costs 1
SOUND = 2.0  # how much of a spread a weight matrix passes on; the root of two is Kaiming's
FAR_ABOVE_GUESS = 2.0  # the first loss over that of a guess
LATE_SAMPLES = 2
CALM = 5.0  # the largest spread of a model that has shrunk what it amplified
LEARNT = 0.8  # of the loss of a guess
SMALL = 0.03  # how much of its input's spread a layer passes on; narrow transformers begin at 0.1
LARGE = 4.0  # sound initialisation ends at the root of two
SCALED = 3.0  # the scale of a normalisation layer, which begins at one
LAYERS = 2
SPREAD = 4.0  # of the outputs, or of a layer's input over that of the lowest: the signal shows it
FADED = 0.2  # biases, which have a scale of their own, remain
SATURATED = 0.3  # of the units
NORM = re.compile(r"norm", re.IGNORECASE)
EMBEDDING = re.compile(r"embedding", re.IGNORECASE)
EDGE = 1e18  # squares of larger numbers are infinite in float32


def layer_inputs(model: Model, sample: Sample) -> list[Activation]:
    """The inputs of layers in the order of the model; nothing if that of the first is unknown."""
    matrices = [p.name.rpartition(".")[0] for p in model.parameters if len(p.shape) >= 2]
    given = {a.name: a for a in sample.activations if a.op.startswith("input of") and a.std > 0}
    known = [given[name] for name in dict.fromkeys(matrices) if name in given]
    return known if known and matrices and known[0].name == matrices[0] else []


def is_amplified(layers: list[Activation]) -> bool:
    """Tell whether the spread rises from layer to layer, far beyond sound initialisation."""
    low, high = layers[0].std, layers[-1].std
    is_rising = all(a.std < b.std for a, b in pairwise(layers))
    return is_rising and high >= AMPLIFIED and high / low >= PER_LAYER ** (len(layers) - 1)


def has_outgrown(process: Process) -> bool:
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


def is_far_above_guess(sample: Sample) -> bool:
    """Tell whether the only loss of the sample is far above that of a model that knows nothing."""
    guess = _guess(sample)
    if guess is None or not isfinite(sample.loss):
        return False
    return (
        sample.loss
        > (SQUARES if sample.losses[0].loss == "mse_loss" else FAR_ABOVE_GUESS) * guess
        > 0.0
    )


def keeps_spread(process: Process, first: Sample) -> bool:
    """Tell whether the weights keep a spread, so that something else in the model amplifies it."""
    shapes = {p.name: p.shape for m in latest_models(process) for p in m.parameters}
    gains = [
        norm / sqrt(shape[0])
        for name, norm in zip(first.names, first.weight_norms, strict=False)
        if len(shape := shapes.get(name, ())) >= 2 and isfinite(norm)
    ]
    return bool(gains) and max(gains) < SOUND


@dataclass(frozen=True, slots=True)
class InitialScales:
    """How much each layer of a fresh model amplifies, and the scales of its normalisation."""

    gains: tuple[float, ...]
    norms: tuple[float, ...]
    is_normalised: bool = False


def scale_fault(scales: InitialScales, sample: Sample) -> str:
    """What is wrong with the scales, in words; nothing if they are sound."""
    gains, norms = scales.gains, scales.norms
    if len(gains) >= LAYERS and max(gains) < SMALL and not scales.is_normalised and _fades(sample):
        return f"no layer scales its input by more than {max(gains):.2g}"
    middle = float(np.median(gains)) if gains else 0.0
    if len(gains) >= LAYERS and middle > LARGE and _swells(sample):
        return f"the median layer scales its input by {middle:.2g}"
    scale = float(np.median(norms)) if norms else 0.0
    if len(norms) >= LAYERS and scale > SCALED:
        return f"normalisation layers start with a scale of {scale:.2g} instead of 1"
    return ""


def _spreads(sample: Sample) -> list[float]:
    """The spreads of what layers are given, the one nearest to the loss first."""
    given = (a.std for a in sample.activations if a.op.startswith("input of"))
    return [std for std in given if isfinite(std)]


def _fades(sample: Sample) -> bool:
    spreads = _spreads(sample)
    return len(spreads) >= LAYERS and min(spreads) < FADED * max(spreads)


def _swells(sample: Sample) -> bool:
    spreads = _spreads(sample)
    is_grown = len(spreads) >= LAYERS and max(spreads) > SPREAD * spreads[-1] > 0.0
    is_flat = any(a.saturated > SATURATED for a in sample.activations)
    return is_grown or is_flat or any(i.prediction.std > SPREAD for i in sample.losses)


def initial_scales(process: Process, sample: Sample) -> InitialScales:
    """Return how much each layer amplifies at a sample, and the scales of normalisation."""
    norms = dict(zip(sample.names, sample.weight_norms, strict=False))
    gains: list[float] = []
    scales: list[float] = []
    is_normalised = False
    for model in latest_models(process):
        kinds = {m.name: m.type for m in model.modules}
        is_normalised |= any(NORM.search(kind) for kind in kinds.values())
        for parameter in model.parameters:
            norm = norms.get(parameter.name)
            kind = kinds.get(parameter.name.rpartition(".")[0], "")
            if norm is None or not isfinite(norm) or norm <= 0.0 or not _counts(parameter, kind):
                continue
            rms = norm / sqrt(prod(parameter.shape))
            if len(parameter.shape) >= 2:
                gains.append(rms * sqrt(prod(parameter.shape[1:])))
            elif NORM.search(kind) and parameter.name.endswith("weight"):
                scales.append(rms)
    return InitialScales(tuple(gains), tuple(scales), is_normalised)


def _counts(parameter: Parameter, kind: str) -> bool:
    is_table = EMBEDDING.search(kind) or EMBEDDING.search(parameter.name)
    is_followed = FOLLOWERS.search(parameter.name)
    return bool(parameter.shape) and not is_table and not is_followed and parameter.is_trainable


def is_near_overflow(process: Process) -> bool:
    """Tell whether an activation of the first sample is near the end of float32."""
    first = process.samples[0]
    return max(abs(a.high) for a in first.activations if a.high == a.high) > EDGE
