from dataclasses import replace

import numpy as np

from traindx.analysis.metrics.learning_rates import (
    ALWAYS,
    RATE_POINTS,
    VANISHED,
    do_evaluations_differ,
    vanished_since,
    zero_settings,
)
from traindx.examples import Process, logged, make_run, recorded, rounded
from traindx.model.run import Config, Floats, Series, Setting
from traindx.registry import Finding, Findings, Run, Strength, cite, cite_setting, detector, finding


@detector(needs=("lr|config",), suggests=("lr-zero", "lr-schedule-misuse", "lr-too-low"))
def check(run: Run) -> Findings:
    """The learning rate is zero for a good part of the run.

    ## What it detects
    A learning rate of exactly zero: configured so, or logged so for a fifth of the run or more; or
    one that a schedule has brought below a hundred-millionth of its peak for as long. Where a
    recording tells of several optimizers, each that began with a rate and lost it. A log that
    prints `0.00000` tells that the rate is zero or too small for its decimals.

    ## Why it matters
    Steps are taken and nothing is learnt; the rest of the compute is wasted.

    ## What to do
    Give the schedule the true number of steps (not epochs), or set the rate that was meant.

    ## When it is wrong
    A parameter group that is frozen on purpose has rate zero too; only the main rate is judged, and
    of further optimizers only a rate that was there and went. A first warm-up step and the last
    point of a decay are zero by design and are left alone.
    """
    rate = run.get("lr")
    if rate is None:
        rates = zero_settings(run)
        if rates:
            claim = f"The configured learning rate is zero ({rates[0].key})"
            yield finding(claim, "lr-zero", *map(cite_setting, rates))
        return
    if rate.origin.decimals and not bool(np.any(rate.values)):
        if len(rate) >= RATE_POINTS:
            yield _rounded(rate, moves=do_evaluations_differ(run))
        return
    yield from _logged(rate)
    for other in run.matching("lr/optimizer*"):
        if float(other.values[0]) > 0.0:
            yield from _logged(other, f" of {other.name.removeprefix('lr/')}")


def _logged(rate: Series, whose: str = "") -> Findings:
    vanished = vanished_since(rate)
    if vanished is None:
        return
    first, share, is_exact = vanished
    always = share > ALWAYS
    since = "throughout" if always else f"since {rate.when(first)}"
    level = "0" if is_exact else f"{rate.last:.1e}, below {VANISHED:.0e} of its peak,"
    says = f"{rate.origin.name} is {level} {since}, {100 * share:.0f} % of the logged points"
    yield finding(
        f"The learning rate{whose} is {'zero' if is_exact else 'nearly zero'} {since}",
        {} if always else {"lr-schedule-misuse": Strength.MODERATE},
        cite(rate, says, first, -1, share=share),
        shows="lr-zero" if is_exact else "lr-schedule-misuse",  # a decay alone never gets to 0
    )


def _rounded(rate: Series, *, moves: bool) -> Finding:
    """A rate of which all printed decimals are zero."""
    printed = f"{0.0:.{rate.origin.decimals}f}"
    most = 0.5 * 10.0**-rate.origin.decimals
    return finding(
        f"The learning rate is printed as {printed} throughout, so it is zero or below {most:.0e}",
        {"lr-zero": Strength.WEAK if moves else Strength.MODERATE, "lr-too-low": Strength.MODERATE},
        cite(rate, f"{rate.origin.name} is {printed} at every point", 0, -1, most=most),
    )


def _printed(rates: Floats, decimals: int) -> Run:
    return rounded(logged(lr=np.round(rates, decimals)), "lr", decimals)


FIRES = {
    "printed as 0.00000 throughout": _printed(np.full(20, 4e-6), 5),
    "zero throughout": logged(lr=np.zeros(50)),
    "the schedule ends at half the run": logged(
        lr=np.concatenate([np.linspace(1e-3, 0.0, 100), np.zeros(100)])
    ),
    "a decay per epoch that is stepped per batch": logged(lr=0.05 * 0.1 ** np.arange(60.0)),
    "the schedule of the second optimizer ends": logged(
        lr=np.full(100, 2e-3), lr_optimizer1=np.r_[np.linspace(2e-3, 0.0, 6), np.zeros(94)]
    ),
    "a warm-up from zero, and a schedule that ends early": logged(
        lr=np.r_[np.linspace(0.0, 1e-3, 4), np.linspace(1e-3, 0.0, 47), np.zeros(40)]
    ),
    "configured as zero": make_run(config={"optimizer.lr": 0}),
}

SILENT = {
    "near miss: a crash before the first step of a warm-up": replace(
        recorded(Process()), config=Config((Setting("optimizer.lr", 0.0, "rank0.jsonl", "line 4"),))
    ),
    "near miss: printed with few decimals, not zero": _printed(np.full(20, 0.01), 2),
    "near miss: linear decay that ends at zero": logged(lr=np.linspace(1e-3, 0.0, 200)),
    "near miss: a second optimizer that never had a rate": logged(
        lr=np.full(100, 2e-3), lr_optimizer1=np.zeros(100)
    ),
    "warm-up from zero": logged(lr=np.concatenate([np.linspace(0.0, 1e-3, 20), np.full(80, 1e-3)])),
    "one of two rates is zero on purpose": make_run(config={"head_lr": 1e-3, "backbone_lr": 0.0}),
}
