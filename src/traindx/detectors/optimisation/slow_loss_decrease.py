import numpy as np

from traindx.analysis.curves import curve, slope_z
from traindx.analysis.metrics.learning_rates import cite_tiny_rate
from traindx.analysis.metrics.objective import finite_objective
from traindx.examples import decay, flat, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding

NEXT_TO_NOTHING = 0.05  # of the starting loss over the whole run
STEADY = 0.5  # the second half still falls at this share of the first half's pace: no plateau
MANY_POINTS = 30  # fewer points may be an early look at a healthy run
ASTRONOMICAL = 1e6


@detector(needs=("loss",), suggests=("lr-too-low", "vanishing-gradients"))
def check(run: Run) -> Findings:
    """The loss falls steadily, at a pace that will never arrive.

    ## What it detects
    A fall that is statistically certain, steady from start to end, and only a few percent of the
    starting loss.

    ## Why it matters
    The direction is right and the steps are too small; the run would need many times its budget.

    ## What to do
    Raise the learning rate tenfold and compare the first hundred steps.

    ## When it is wrong
    Fine-tuning that starts near its optimum barely moves by design. So does a run that has only
    begun. Without a learning rate that is tiny by any measure this stays a remark.
    """
    finite = finite_objective(run, MANY_POINTS)
    if finite is None:
        return
    c = curve(finite.values)
    start, end = c.start_value, c.end_value
    gained = (start - end) / abs(start) if start else 0.0
    if start > ASTRONOMICAL:
        return  # a matter of scale, which another detector judges
    if not 0.0 < gained < NEXT_TO_NOTHING or slope_z(finite.values) > -5.0:
        return
    middle = float(np.median(c.level[len(c.level) * 9 // 20 : len(c.level) * 11 // 20 + 1]))
    first, second = c.start_level - middle, middle - c.end_level
    if second < STEADY * first:
        return
    rate = cite_tiny_rate(run)
    says = f"{finite.origin.name} fell from {start:.4g} to {end:.4g} ({100 * gained:.2g} %)"
    yield finding(
        f"The loss falls steadily, by only {100 * gained:.2g} % over the whole run",
        {
            "lr-too-low": Strength.STRONG if rate else Strength.WEAK,
            "vanishing-gradients": Strength.WEAK,
        },
        cite(finite, says, 0, -1, start=start, end=end),
        *rate,
        strength=Strength.MODERATE if rate else Strength.WEAK,
        is_symptom=bool(rate),
    )


_CREEP = np.linspace(2.30, 2.24, 200) + 0.002 * np.sin(np.arange(200))

FIRES = {
    "creeps with a rate of 1e-8": logged(loss_train=_CREEP, config={"lr": 1e-8}),
    "creeps, rate unknown: a remark": logged(loss_train=_CREEP),
}

SILENT = {
    "learns": logged(loss_train=decay(200)),
    "near miss: fell early and has arrived": logged(
        loss_train=1.98 + 0.05 * np.exp(-np.arange(200) / 10.0) + 1e-3 * np.sin(np.arange(200))
    ),
    "flat within the noise": logged(loss_train=flat(200, 2.1, noise=0.1)),
}
