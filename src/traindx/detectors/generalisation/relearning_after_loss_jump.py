"""The training loss jumps above its start, is learnt again, and validation falls at the jump."""

import numpy as np

from traindx.examples import decay, flat, join, make_run
from traindx.model.findings import Finding, cite, finding, suggested
from traindx.model.metric_names import HIGHER_IS_BETTER, kind_of
from traindx.model.run import Floats, Series
from traindx.registry import Findings, Run, detector

LEARNT = 0.4  # of its start: where the loss was just before the jump, or lower
ABOVE = 1.5  # times its start: new data cost more than no training at all
LEARNT_AGAIN = 0.5  # of the jump that is gained back after it
LOST = 0.1  # of the metric, from just before the jump to just after it
SWAPPED = 0.5  # of the held-out loss, from just before the jump to just after it …
RISEN = 1.5  # … and how far it is above that at the end
INSIDE = 0.1  # of the run, on either side of the jump
ENOUGH = 8  # points
SAME_RATE = 1.5  # times: a rate that rises more explains the jump


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
    loss = run.objective()
    if loss is None or len(loss.finite()) < ENOUGH:
        return
    finite = loss.finite()
    at = _jump(finite.values)
    if at is None or _rate_rises(run, finite, at):
        return
    held_out = run.get("loss/val")
    swap = _swap(held_out.finite(), finite, at) if held_out is not None else None
    if held_out is not None and swap is not None:
        yield _finding(finite, at, held_out.finite(), swap)
        return
    for name in run.series:
        metric = run.get(name)
        is_one = kind_of(name) in HIGHER_IS_BETTER and "@" not in name
        drop = _drop(metric.finite(), finite, at) if is_one and metric is not None else None
        if metric is not None and drop is not None:
            yield _finding(finite, at, metric.finite(), drop)
            return


def _jump(values: Floats) -> int | None:
    """The point at which a loss that was learnt is suddenly above its start, to be learnt again."""
    at = int(np.argmax(np.diff(values))) + 1
    edge = INSIDE * len(values)
    before, top = float(np.min(values[max(0, at - 2) : at])), float(values[at])
    start, after = float(values[0]), values[at + 1 :]
    if not edge <= at <= len(values) - 1 - edge or not len(after) or start <= 0:
        return None
    is_jump = before < LEARNT * start and top > ABOVE * start
    is_learnt = top - float(after.min()) > LEARNT_AGAIN * (top - before)
    return at if is_jump and is_learnt else None


def _rate_rises(run: Run, loss: Series, at: int) -> bool:
    rate = run.get("lr")
    if rate is None or rate.axis != loss.axis or len(rate) < 2:
        return False
    here = int(np.searchsorted(rate.steps, loss.steps[at]).clip(1, len(rate) - 1))
    return float(rate.values[here]) > SAME_RATE * float(rate.values[here - 1])


def _after(loss: Series, at: int, metric: Series) -> int:
    """The first evaluation after the jump; 0 where there is none."""
    when = _moments(loss)[[at - 1, at]]
    here = int(np.searchsorted(_moments(metric), when[1], side="left"))
    return here if len(metric) >= 4 and when[0] <= when[1] and here < len(metric) else 0


def _drop(metric: Series, loss: Series, at: int) -> int | None:
    """The evaluation after the jump, where it is worse and none after it is better than before."""
    here = _after(loss, at, metric)
    before = float(metric.values[here - 1]) if here else 0.0
    is_lost = here > 0 and float(metric.values[here]) < (1.0 - LOST) * before
    return here if is_lost and float(metric.values[here:].max()) <= before else None


def _swap(held_out: Series, loss: Series, at: int) -> int | None:
    """The evaluation after the jump, where the held-out loss falls as that of training rises.

    Of a mixture of old and new data the new half was unknown and costs less now; once the new is
    learnt, the old is what costs.
    """
    here = _after(loss, at, held_out)
    if not 0 < here < len(held_out) - 1:
        return None
    before, after = float(held_out.values[here - 1]), float(held_out.values[here])
    is_swapped = 0 < after < SWAPPED * before
    return here if is_swapped and float(held_out.values[-1]) > RISEN * after else None


def _moments(series: Series) -> Floats:
    """When the points are, in epochs where they are known."""
    has_epochs = series.axis != "epoch" and len(series.epochs) == len(series)
    return series.epochs if has_epochs else series.steps


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
    "one task after the other": make_run(
        {"loss/train": _LOSS, "accuracy/val": _HALF}, axis="epoch"
    ),
    "the held-out loss is swapped": make_run(
        {"loss/train": _LOSS, "loss/val": _SWAP}, axis="epoch"
    ),
}

SILENT = {
    "near miss: a broken update costs both": make_run(
        {"loss/train": _LOSS, "loss/val": join(decay(10), [3.0], decay(9))}, axis="epoch"
    ),
    "near miss: a broken update, made good": make_run(
        {"loss/train": _LOSS, "accuracy/val": join(np.full(10, 0.9), [0.5], np.full(9, 0.92))},
        axis="epoch",
    ),
    "near miss: a restart of the rate": make_run(
        {
            "loss/train": _LOSS,
            "accuracy/val": _HALF,
            "lr": join(np.linspace(0.1, 1e-3, 10), np.linspace(0.1, 1e-3, 10)),
        },
        axis="epoch",
    ),
    "near miss: a spike below the start": make_run(
        {"loss/train": np.minimum(_LOSS, 0.4), "accuracy/val": _HALF}, axis="epoch"
    ),
    "noisy and learning": make_run(
        {"loss/train": decay(20, 2.0, 0.3, noise=0.1), "accuracy/val": flat(20, 0.8)}, axis="epoch"
    ),
}
