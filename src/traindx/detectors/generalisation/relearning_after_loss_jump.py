import numpy as np

from traindx.analysis.metrics.jumps import drop_after, jump_above_start, swap_after
from traindx.analysis.metrics.learning_rates import rate_rises
from traindx.analysis.metrics.objective import finite_objective
from traindx.examples import decay, flat, join, logged
from traindx.model.metric_names import HIGHER_IS_BETTER, kind_of
from traindx.model.run import Series
from traindx.registry import Finding, Findings, Run, cite, detector, finding, suggested

ENOUGH = 8  # points


@detector(
    needs=("loss", "accuracy/*|f1/*|r2/*|map/*|loss/val"),
    suggests=("catastrophic-forgetting", "data-distribution-change"),
)
def check(run: Run) -> Findings:
    """The training loss jumps above where it began, falls again, and the metric drops with it.

    ## What it detects
    A training loss that was learnt, rises between two points to well above its very first value,
    and is learnt anew; at the same place the evaluated metric falls, and the learning rate did not
    rise. Or the held-out loss falls by half where that of training jumps, and climbs again: data of
    a kind that was held out come in, and those from before go.

    ## Why it matters
    A model that has learnt its data meets other data and does worse than an untrained one: it was
    sure of the old. What it learns next overwrites what it knew.

    ## What to do
    Mix the data: shuffle over all of it, or replay the old beside the new. If it is one data set,
    look at its order in the file.

    ## When it is wrong
    A broken update makes the loss jump as well; then the same data is learnt again, and the metric
    comes back to where it was.
    """
    finite = finite_objective(run, ENOUGH)
    if finite is None:
        return
    at = jump_above_start(finite.values)
    if at is None or rate_rises(run, finite, at):
        return
    held_out = run.get("loss/val")
    swap = swap_after(held_out.finite(), finite, at) if held_out is not None else None
    if held_out is not None and swap is not None:
        yield _finding(finite, at, held_out.finite(), swap)
        return
    for name in run.series:
        metric = run.get(name)
        is_one = kind_of(name) in HIGHER_IS_BETTER and "@" not in name
        drop = drop_after(metric.finite(), finite, at) if is_one and metric is not None else None
        if metric is not None and drop is not None:
            yield _finding(finite, at, metric.finite(), drop)
            return


def _finding(loss: Series, at: int, metric: Series, here: int) -> Finding:
    before, top, start = float(loss.values[at - 1]), float(loss.values[at]), float(loss.values[0])
    worse, was = float(metric.values[here]), float(metric.values[here - 1])
    then = "rises again" if kind_of(metric.name) == "loss" else "does not recover"
    rose = f"{loss.origin.name} rises from {before:.4g} to {top:.4g}; it began at {start:.4g}"
    fell = f"{metric.origin.name} falls from {was:.4g} to {worse:.4g} and {then}"
    return finding(
        f"The training data change at {loss.when(at)}: the loss jumps above its start, and "
        "what was learnt before is forgotten",
        suggested("catastrophic-forgetting", moderate="data-distribution-change"),
        cite(loss, rose, at - 1, at, before=before, after=top),
        cite(metric, fell, here - 1, here, before=was, after=worse),
        against=suggested(moderate="lr-too-high", weak="missing-gradient-clipping"),
    )


_LOSS = join(decay(10, 0.42, 0.0004, noise=0.0), [3.1], decay(9, 0.25, 0.05, noise=0.0))
_HALF = join(np.full(10, 0.515), [0.42], np.full(9, 0.48))

_SWAP = join(np.linspace(2.5, 5.3, 10), [1.6], np.linspace(2.4, 4.5, 9))

FIRES = {
    "one task after the other": logged(loss_train=_LOSS, accuracy_val=_HALF, axis="epoch"),
    "the held-out loss is swapped": logged(loss_train=_LOSS, loss_val=_SWAP, axis="epoch"),
}

SILENT = {
    "near miss: a broken update costs both": logged(
        loss_train=_LOSS, loss_val=join(decay(10), [3.0], decay(9)), axis="epoch"
    ),
    "near miss: a broken update, made good": logged(
        loss_train=_LOSS, accuracy_val=join(np.full(10, 0.9), [0.5], np.full(9, 0.92)), axis="epoch"
    ),
    "near miss: a restart of the rate": logged(
        loss_train=_LOSS,
        accuracy_val=_HALF,
        lr=join(np.linspace(0.1, 1e-3, 10), np.linspace(0.1, 1e-3, 10)),
        axis="epoch",
    ),
    "near miss: a spike below the start": logged(
        loss_train=np.minimum(_LOSS, 0.4), accuracy_val=_HALF, axis="epoch"
    ),
    "noisy and learning": logged(
        loss_train=decay(20, 2.0, 0.3, noise=0.1), accuracy_val=flat(20, 0.8), axis="epoch"
    ),
}
