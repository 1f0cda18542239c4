"""Gradients fade towards the input layers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from traindx.evidence import Finding, Strength, cite
from traindx.model import Floats, Run, Series, make_run
from traindx.registry import detector

FADED = 1e-3  # first layers over last layers; well-scaled networks stay within a factor of thirty
DEEP_ENOUGH = 4  # layers; fewer cannot show a course
ORDER = 0.8  # rank correlation of norm and depth: a course, not one odd layer


@detector(needs=("layers/*/grad_norm",), suggests=("vanishing-gradients",))
def check(run: Run) -> Iterator[Finding]:
    """Gradient norms shrink by orders of magnitude from the output to the input layers.

    ## What it detects
    A steady fall of the gradient norm towards the input over at least four weight layers, to less
    than a thousandth.

    ## Why it matters
    The first layers hardly change: the network trains only its head, on random features.

    ## What to do
    ReLU-like activations with matching initialisation, normalisation, and residual connections.

    ## When it is wrong
    Layers that are frozen on purpose have a norm of zero and are left out. Norms grow with the size
    of a layer; a thousandfold difference is beyond that.
    """
    layers = [s for s in _in_order(run.matching("layers/*/grad_norm")) if _level(s) > 0.0]
    if len(layers) < DEEP_ENOUGH:
        return
    norms = np.array([_level(s) for s in layers])
    third = max(1, len(norms) // 3)
    ratio = float(np.median(norms[:third]) / np.median(norms[-third:]))
    if ratio > FADED or _rank_correlation(np.log(norms)) < ORDER:
        return
    first, last = layers[0], layers[-1]
    yield Finding(
        claim=f"Gradients fade {1 / ratio:.0e}-fold from the last layers to the first",
        strength=Strength.STRONG,
        evidence=(
            cite(first, f"{first.origin.name} is {norms[0]:.2e} (median)", 0, -1, norm=norms[0]),
            cite(last, f"{last.origin.name} is {norms[-1]:.2e} (median)", 0, -1, norm=norms[-1]),
        ),
        suggests={"vanishing-gradients": Strength.STRONG},
        shows="vanishing-gradients",
        is_symptom=True,
        onset=float(first.steps[0]),
    )


def _in_order(layers: list[Series]) -> list[Series]:
    """Weights only, in the order of their numbers; biases and norms have scales of their own."""
    weights = [s for s in layers if not re.search(r"bias|norm|bn|ln_", s.name.split("/")[1])]

    def numbers(series: Series) -> list[int]:
        return [int(n) for n in re.findall(r"\d+", series.name)]

    numbered = [s for s in weights if numbers(s)]
    return sorted(numbered, key=numbers) if len(numbered) == len(weights) else weights


def _level(series: Series) -> float:
    finite = series.finite().values
    return float(np.median(finite)) if len(finite) else 0.0


def _rank_correlation(values: Floats) -> float:
    ranks = np.argsort(np.argsort(values)).astype(np.float64)
    return float(np.corrcoef(ranks, np.arange(len(values)))[0, 1])


def _layers(norms: list[float]) -> dict[str, list[float]]:
    return {f"layers/net.{i}.weight/grad_norm": [n] * 5 for i, n in enumerate(norms)}


FIRES = {
    "a sigmoid network of eight layers": make_run(_layers([10.0 ** (i - 7) for i in range(8)]))
}

SILENT = {
    "well scaled": make_run(_layers([0.5, 0.6, 0.4, 0.7, 0.9, 1.0])),
    "near miss: a tenfold fall": make_run(_layers([0.1, 0.15, 0.2, 0.4, 0.7, 1.0])),
    "frozen first layers": make_run(_layers([0.0, 0.0, 0.0, 0.8, 0.9, 1.0, 1.0])),
}
