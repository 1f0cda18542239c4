"""The weights of a fresh model begin far too small, or far too large."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite, prod, sqrt

import numpy as np

from traindx.analysis.curves import curve
from traindx.analysis.program.origins import loads_weights, rescales
from traindx.analysis.recordings.traces import FOLLOWERS, latest_models
from traindx.examples import decay, flat, recorded, watched, weights
from traindx.model.findings import Strength, cite, cite_record, finding
from traindx.model.recording import Activation, Parameter, Process, Sample
from traindx.model.run import Floats, Source
from traindx.registry import Findings, Run, detector

CAUSE = "bad-initialisation"
SMALL = 0.03  # how much of its input's spread a layer passes on; narrow transformers begin at 0.1
LARGE = 4.0  # sound initialisation ends at the root of two
SCALED = 3.0  # the scale of a normalisation layer, which begins at one
LAYERS = 2
SPREAD = 4.0  # of the outputs, or of a layer's input over that of the lowest: the signal shows it
FADED = 0.2  # biases, which have a scale of their own, remain
SATURATED = 0.3  # of the units
GAINED = 0.5  # of the starting loss: a run that gains more has got over it
POINTS = 30  # of the loss
NORM = re.compile(r"norm", re.IGNORECASE)
EMBEDDING = re.compile(r"embedding", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scales:
    """How much each layer of a fresh model amplifies, and the scales of its normalisation."""

    gains: tuple[float, ...]
    norms: tuple[float, ...]
    is_normalised: bool = False


@detector(needs=("recording", "loss", "source"), suggests=(CAUSE, "vanishing-gradients"))
def check(run: Run) -> Findings:
    """Before the first step every layer shrinks its input to nothing, or blows it up.

    ## What it detects
    In the first sample of a program that loads no weights, the root mean square of each weight
    matrix times the root of its inputs: about one where the scale of a signal is kept. All of them
    below 0.03 in a network without normalisation, half of them above 4, or scales of normalisation
    layers that begin above 3 instead of at one; where the activations of that sample show it, and
    in a run that then learns little.

    ## Why it matters
    The factor is taken once per layer, forward and backward. A signal that is too small leaves the
    output, and the gradients, independent of the input; one that is too large saturates whatever
    follows.

    ## What to do
    Leave the initialisation of the layers as it is, or use `kaiming_normal_` or `xavier_uniform_`,
    which know the width; a fixed standard deviation fits one width only.

    ## When it is wrong
    An optimizer of Adam's kind may recover within some hundred steps; a run that learns well is
    left alone. Single layers that begin at zero, and embeddings, have scales of their own.
    """
    loss = run.objective()
    main = run.recording.main if run.recording is not None else None
    if loss is None or main is None or len(loss.finite()) < POINTS or not main.samples:
        return
    if not run.sources or loads_weights(run) or rescales(run):
        return
    finite, first = loss.finite(), main.samples[0]
    c = curve(finite.values)
    says = _out_of_scale(_scales(main, first), first) if first.step == 0 else ""
    if not says or c.gained > GAINED:
        return
    end = f"{finite.origin.name} goes from {c.start_value:.4g} to {c.end_value:.4g}"
    yield finding(
        f"The initial weights are badly scaled: {says}",
        {CAUSE: Strength.STRONG},
        cite_record(main, first.line, f"at initialisation {says}", step=0.0),
        cite(finite, end, 0, -1, start=c.start_value, end=c.end_value),
        shows=CAUSE,
    )


def _out_of_scale(scales: Scales, sample: Sample) -> str:
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


def _scales(process: Process, sample: Sample) -> Scales:
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
    return Scales(tuple(gains), tuple(scales), is_normalised)


def _counts(parameter: Parameter, kind: str) -> bool:
    is_table = EMBEDDING.search(kind) or EMBEDDING.search(parameter.name)
    is_followed = FOLLOWERS.search(parameter.name)
    return bool(parameter.shape) and not is_table and not is_followed and parameter.is_trainable


def _run(
    norm: float, loss: Floats, *, last: float | None = None, text: str = "model = Net()",
    modules: Mapping[str, str] | None = None, gain: float | None = None,
) -> Run:  # fmt: skip
    given = (norm, norm, norm if last is None else last)
    seen = tuple(
        Activation(f"{i}", "input of addmm", std=(norm / 4.0 if gain is None else gain) ** (i / 2))
        for i in (4, 2, 0)
    )
    names = weights("0.weight", "2.weight", "4.weight")
    process = watched(*names, modules=modules, weight_norms=given, activations=seen)
    run = recorded(process, loss_train=loss)
    return replace(run, sources=(Source("train.py", text),))


def _normalised(scale: float, loss: Floats) -> Run:
    """Three matrices and two normalisation layers of the given scale."""
    held = [Parameter(f"n{i}.weight", (16,), optimizer=0) for i in range(2)]
    names = {"n0": "LayerNorm", "n1": "LayerNorm"}
    matrices = weights("0.weight", "2.weight", "4.weight")
    norms = (4.0, 4.0, 4.0, 4.0 * scale, 4.0 * scale)
    process = watched(*matrices, *held, modules=names, weight_norms=norms)
    run = recorded(process, loss_train=loss)
    return replace(run, sources=(Source("train.py", "model = Net()"),))


_STUCK = flat(60, 2.3, noise=0.01)

FIRES = {
    "a deviation of a ten-thousandth": _run(0.002, _STUCK),
    "ten times too large": _run(24.0, _STUCK),
    "scales of ten": _normalised(10.0, _STUCK),
}

SILENT = {
    "sound": _run(3.0, _STUCK),
    "near miss: small, and learns": _run(0.002, decay(60)),
    "near miss: one large layer": _run(3.0, _STUCK, last=40.0),
    "near miss: the last layer begins near zero": _run(3.0, _STUCK, last=0.001),
    "near miss: loaded": _run(24.0, _STUCK, text="m.load_state_dict(torch.load('a.pt'))"),
    "near miss: scaled in the forward pass": _run(24.0, _STUCK, gain=1.0),
    "near miss: below normalisation": _run(0.002, _STUCK, modules={"2": "LayerNorm"}),
    "normalisation as it is": _normalised(1.0, _STUCK),
}
