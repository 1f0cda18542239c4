from typing import Any

from traindx.analysis.recordings.fading import fading_chains, fading_norms, middle, usual_norm
from traindx.analysis.recordings.traces import Trace, told_once
from traindx.examples import make_run, recorded, watched, weights
from traindx.model.findings import Evidence
from traindx.model.recording import Process
from traindx.registry import Findings, Run, cite, cite_record, detector, finding, suggested

CAUSE = "vanishing-gradients"
CLAIM = "Gradients vanish, {:.0e}-fold from the last layers to the first"


@detector(needs=("layers/*/grad_norm",), suggests=(CAUSE,))
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
    fading = fading_norms(run)
    if fading is not None:
        ratio, *ends = fading
        levels = [(s, usual_norm(s)) for s in ends]
        yield finding(
            CLAIM.format(1 / ratio),
            suggested(CAUSE),
            *(cite(s, f"{s.origin.name} is {n:.2e} (median)", 0, -1, norm=n) for s, n in levels),
            shows=CAUSE,
        )


def _look(process: Process) -> Findings:
    for ratio, chain, keeps_up in fading_chains(process):
        yield finding(
            CLAIM.format(1 / ratio),
            suggested(CAUSE),
            _cited(process, chain[0]),
            _cited(process, chain[-1]),
            shows=None if keeps_up else CAUSE,
            onset=chain[0].samples[0].step,
        )


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
