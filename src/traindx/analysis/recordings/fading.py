"""Gradients that fade from the last layers of a network to the first."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from traindx.analysis.recordings.observations import has_learnt
from traindx.analysis.recordings.traces import Trace, latest_models, traces_of
from traindx.model.recording import Model, Process
from traindx.model.run import Floats, Run, Series

FADED = 1e-3  # first layers over last layers; well-scaled networks stay within a factor of thirty
DEEP_ENOUGH = 4  # layers; fewer cannot show a course
ORDER = 0.8  # rank correlation of norm and depth: a course, not one odd layer
KEEPS_UP = 0.05  # updates of the first layers over the last: Adam and its kin make up for it
SURE_ORDER, SURELY_FADED = 0.95, 1e-4  # where updates keep up
SATURATING = frozenset({"Sigmoid", "Tanh", "Softsign", "Hardsigmoid", "Hardtanh"})
SAMPLES = 3  # of a recording; a network that starts at zero on purpose has left it by then
_TABLES = re.compile(r"emb|wte|wpe|pos", re.IGNORECASE)


def first_over_last(norms: Floats) -> float:
    """The first third over the last."""
    third = max(1, len(norms) // 3)
    return float(np.median(norms[:third]) / np.median(norms[-third:]))


def faded(layers: Sequence[Trace], *, keeps_up: bool = False) -> float | None:
    """How far gradients and updates fade along a chain of layers; None if they do not.

    Where updates keep up, gradients alone decide.
    """
    if len(layers) < DEEP_ENOUGH:
        return None
    norms = np.array([middle(t.grads) for t in layers])
    updates = np.array([max(middle(t.ratios), 1e-30) for t in layers])
    ratio = first_over_last(norms)
    is_course = rank_correlation(np.log(norms)) >= (SURE_ORDER if keeps_up else ORDER)
    is_left_behind = keeps_up or first_over_last(updates) <= KEEPS_UP
    has_faded = ratio <= (SURELY_FADED if keeps_up else FADED)
    return ratio if has_faded and is_course and is_left_behind else None


def is_saturating(model: Model, name: str, chain: Sequence[Trace]) -> bool:
    """Tell whether a `Sequential` has a function with flat ends per weight, and no norm."""
    kinds = [m.type for m in model.modules if m.name.rpartition(".")[0] == name]
    is_normed = any("Norm" in kind for kind in kinds)
    return not is_normed and sum(k in SATURATING for k in kinds) >= len(chain) - 1


def chains_of(model: Model, layers: Sequence[Trace]) -> dict[str, list[Trace]]:
    """The layers of each `Sequential` of a model, which run one after another."""
    kinds = {m.name: m.type for m in model.modules}
    found: dict[str, list[Trace]] = {}
    for trace in layers:
        parent, _, last = trace.name.rpartition(".")[0].rpartition(".")
        if last.isdigit() and kinds.get(parent) == "Sequential":
            found.setdefault(parent, []).append(trace)
    return found


def middle(values: tuple[float | None, ...]) -> float:
    """Return the median of the numbers among the values; 0 if there is none."""
    known = [v for v in values if v is not None and np.isfinite(v)]
    return float(np.median(known)) if known else 0.0


def in_order_of_depth(layers: list[Series]) -> list[Series]:
    """Weights only, in the order of their numbers; biases and norms have scales of their own."""
    weights = [s for s in layers if not re.search(r"bias|norm|bn|ln_", s.name.split("/")[1])]

    def numbers(series: Series) -> list[int]:
        return [int(n) for n in re.findall(r"\d+", series.name)]

    numbered = [s for s in weights if numbers(s)]
    return sorted(numbered, key=numbers) if len(numbered) == len(weights) else weights


def usual_norm(series: Series) -> float:
    """Return the median of a series; 0 if it has no number."""
    finite = series.finite().values
    return float(np.median(finite)) if len(finite) else 0.0


def rank_correlation(values: Floats) -> float:
    """Return how far the order of values follows their depth."""
    ranks = np.argsort(np.argsort(values)).astype(np.float64)
    return float(np.corrcoef(ranks, np.arange(len(values)))[0, 1])


def fading_norms(run: Run) -> tuple[float, Series, Series] | None:
    """Return how far logged gradient norms fade with depth, and the first and the last layer."""
    layers = in_order_of_depth(run.matching("layers/*/grad_norm"))
    layers = [s for s in layers if usual_norm(s) > 0.0]
    norms = np.array([usual_norm(s) for s in layers])
    if len(layers) < DEEP_ENOUGH or rank_correlation(np.log(norms)) < ORDER:
        return None
    ratio = first_over_last(norms)
    return (ratio, layers[0], layers[-1]) if ratio <= FADED else None


def fading_chains(process: Process) -> Iterator[tuple[float, Sequence[Trace], bool]]:
    """Yield, of each model, how far gradients fade along its layers, and whether updates keep up.

    Its weights come in the order in which it holds them, all of them or those of a `Sequential`.
    """
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
                yield ratio, chain, keeps_up
                break
