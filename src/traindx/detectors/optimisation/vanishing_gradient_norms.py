import re
from dataclasses import replace
from typing import Any

import numpy as np

from traindx.analysis.recordings.fading import (
    DEEP_ENOUGH,
    FADED,
    ORDER,
    chains_of,
    faded,
    first_over_last,
    in_order_of_depth,
    is_saturating,
    middle,
    rank_correlation,
    usual_norm,
)
from traindx.analysis.recordings.observations import has_learnt
from traindx.analysis.recordings.traces import Trace, latest_models, told_once, traces_of
from traindx.examples import make_run, recorded, watched, weights
from traindx.model.findings import Evidence
from traindx.model.recording import Process
from traindx.registry import Finding, Findings, Run, Strength, cite, cite_record, detector, finding

SAMPLES = 3  # of a recording; a network that starts at zero on purpose has left it by then
_TABLES = re.compile(r"emb|wte|wpe|pos", re.IGNORECASE)


@detector(needs=("layers/*/grad_norm",), suggests=("vanishing-gradients",))
def check(run: Run) -> Findings:
    """Gradient norms shrink by orders of magnitude from the output to the input layers.

    ## What it detects
    A steady fall of the gradient norm towards the input over at least four weight layers, to less
    than a thousandth; in a recording also within one `Sequential` of a larger model, beside which
    gradients may pass.

    ## Why it matters
    The first layers hardly change: the network trains only its head, on random features.

    ## What to do
    ReLU-like activations with matching initialisation, normalisation, and residual connections.

    ## When it is wrong
    Layers that are frozen on purpose have a norm of zero and are left out. Norms grow with the size
    of a layer; a thousandfold difference is beyond that. In a recording, where the updates of the
    first layers keep up all the same, as with Adam, nothing is said, unless the layers are those of
    a `Sequential` of sigmoids or tanh and the loss does not fall: their direction is then noise.
    """
    if run.recording is not None:
        yield from told_once(run, _look)
        return
    layers = [
        s for s in in_order_of_depth(run.matching("layers/*/grad_norm")) if usual_norm(s) > 0.0
    ]
    if len(layers) < DEEP_ENOUGH:
        return
    norms = np.array([usual_norm(s) for s in layers])
    ratio = first_over_last(norms)
    if ratio > FADED or rank_correlation(np.log(norms)) < ORDER:
        return
    first, last = layers[0], layers[-1]
    evidence = (
        cite(first, f"{first.origin.name} is {norms[0]:.2e} (median)", 0, -1, norm=norms[0]),
        cite(last, f"{last.origin.name} is {norms[-1]:.2e} (median)", 0, -1, norm=norms[-1]),
    )
    yield _finding(ratio, evidence, float(first.steps[0]))


def _finding(ratio: float, evidence: tuple[Evidence, ...], onset: float) -> Finding:
    return finding(
        f"Gradients vanish, {1 / ratio:.0e}-fold from the last layers to the first",
        {"vanishing-gradients": Strength.STRONG},
        *evidence,
        shows="vanishing-gradients",
        onset=onset,
    )


def _look(process: Process) -> Findings:
    """Each model on its own, its weights in the order in which it holds them."""
    traces = [t.of_owner() for t in traces_of(process) if t.is_owned and t.is_matrix]
    for model in latest_models(process):
        layers = [t for t in traces if t.model.id == model.id and not _TABLES.search(t.name)]
        layers = [t for t in layers if len(t.samples) >= SAMPLES and middle(t.grads) > 0.0]
        chains = chains_of(model, layers)
        flat = [c for name, c in chains.items() if is_saturating(model, name, c)]
        lost = flat if has_learnt(process) is False else []
        tried = [(c, False) for c in (layers, *chains.values())] + [(c, True) for c in lost]
        for chain, keeps_up in tried:
            ratio = faded(chain, keeps_up=keeps_up)
            if ratio is not None:
                evidence = (_cited(process, chain[0]), _cited(process, chain[-1]))
                found = _finding(ratio, evidence, float(chain[0].samples[0].step))
                yield replace(found, shows=None) if keeps_up else found
                break


def _cited(process: Process, trace: Trace) -> Evidence:
    norm, update = middle(trace.grads), middle(trace.ratios)
    says = f"{trace.name} has a gradient norm of {norm:.2e} and updates of {update:.1e} (medians)"
    sample = trace.samples[-1]
    return cite_record(process, sample.line, says, step=sample.step, norm=norm, update=update)


def _layers(norms: list[float]) -> dict[str, list[float]]:
    return {f"layers/net.{i}.weight/grad_norm": [n] * 5 for i, n in enumerate(norms)}


def _recorded(norms: list[float], updates: list[float]) -> Run:
    # the numbers in such names do not tell the order
    names = [f"{part}.{i}.weight" for part in ("stem", "body", "head") for i in range(3)]
    process = watched(*weights(*names), grads=norms, update_ratios=tuple(updates))
    series: dict[str, Any] = {
        f"layers_{n}/grad_norm": [g] * 6 for n, g in zip(names, norms, strict=True)
    }
    return recorded(process, **series)


def _beside(kind: str, updates: list[float], *, between: str = "", end: float = 1.0) -> Run:
    """Eight layers in one part of a model; two more on each side, which get their gradients."""
    fall = [10.0 ** (i - 8) for i in range(8)]
    names = ["stem.weight", "up.weight", *(f"side.{i}.weight" for i in range(8)), "head.weight"]
    modules = {"": "Net", "side": kind, **{f"side.{i}": "Linear" for i in range(8)}}
    modules |= {f"side.{i}a": between for i in range(8) if between}
    process = watched(
        *weights(*names), grads=(0.5, 0.5, *fall, 0.5), modules=modules,
        update_ratios=(1e-3, 1e-3, *updates, 1e-3), loss=lambda i: end if i else 1.0,
    )  # fmt: skip
    series: dict[str, Any] = {"layers_head.weight/grad_norm": [0.5] * 6}
    return recorded(process, **series)


_FALL = [10.0 ** (i - 8) for i in range(9)]

FIRES = {
    "a sigmoid network of eight layers": make_run(_layers([10.0 ** (i - 7) for i in range(8)])),
    "recorded, in the order of the model": _recorded(_FALL, _FALL),
    "within one part that the rest passes by": _beside("Sequential", _FALL[:8]),
    "sigmoids that Adam moves, in vain": _beside("Sequential", [1e-3] * 8, between="Sigmoid"),
}

SILENT = {
    "well scaled": make_run(_layers([0.5, 0.6, 0.4, 0.7, 0.9, 1.0])),
    "near miss: a tenfold fall": make_run(_layers([0.1, 0.15, 0.2, 0.4, 0.7, 1.0])),
    "near miss: Adam updates them all the same": _recorded(_FALL, [1e-3] * 9),
    "near miss: Adam updates the part all the same": _beside("Sequential", [1e-3] * 8),
    "near miss: sigmoids that Adam moves, and it learns": _beside(
        "Sequential", [1e-3] * 8, between="Sigmoid", end=0.3
    ),
    "near miss: heads side by side": _beside("ModuleList", _FALL[:8]),
    "near miss: norms without a course": _recorded([1e-5, 1.0, 1e-4] * 3, [1e-3] * 9),
    "frozen first layers": make_run(_layers([0.0, 0.0, 0.0, 0.8, 0.9, 1.0, 1.0])),
}
