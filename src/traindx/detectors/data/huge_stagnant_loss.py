import numpy as np

from traindx.analysis.courses.loss_courses import settled_since
from traindx.analysis.curves import curve
from traindx.analysis.metrics.objective import finite_objective
from traindx.examples import decay, flat, join, logged
from traindx.registry import Finding, Findings, Run, cite, detector, finding, suggested

ASTRONOMICAL = 1e6  # residuals of a thousand in raw units; ordinary losses begin below a hundred
MOVED = 0.1  # of the starting loss
ENOUGH = 20  # points


@detector(
    needs=("loss",),
    suggests=(
        "unnormalised-targets", "unnormalised-inputs", "lr-too-low", "constant-prediction",
        "insufficient-capacity",
    ),
)  # fmt: skip
def check(run: Run) -> Findings:
    """The loss starts beyond a million and hardly falls.

    ## What it detects
    A training loss beyond a million that loses less than a tenth over the whole run; or a
    validation loss that fell to a level beyond a million and stands there, to three digits.

    ## Why it matters
    Targets or residuals are in units that weights of order one cannot reach in any number of steps.

    ## What to do
    Normalise targets (subtract the mean, divide by the standard deviation), or make the equations
    dimensionless; undo it on the way out.

    ## When it is wrong
    Squared errors on raw money or counts are large too; where they fall, nothing is said.
    """
    finite = finite_objective(run, ENOUGH)
    if finite is None:
        return
    c = curve(finite.values)
    start, end = c.start_value, c.end_value
    if end > ASTRONOMICAL and (settled := _settled(run)) is not None:
        yield settled
        return
    if start < ASTRONOMICAL or not (1.0 - MOVED) * start < end < 2.0 * start:
        return
    order = 10 ** np.floor(np.log10(start))
    says = f"{finite.origin.name} went from {start:.4g} to {end:.4g} in {len(finite)} points"
    yield finding(
        f"The loss is huge, about {order:.0e}, and does not fall",
        suggested("unnormalised-targets", weak="unnormalised-inputs lr-too-low"),
        cite(finite, says, 0, -1, start=start, end=end),
    )


def _settled(run: Run) -> Finding | None:
    """A validation loss that fell to a level still beyond a million, and stands there exactly."""
    val = run.get("loss/val")
    since = None if val is None else settled_since(val.finite().values)
    if val is None or since is None or val.finite().last < ASTRONOMICAL:
        return None
    told = val.finite()
    says = f"{told.origin.name} is {told.last:.4g}, to three digits, since {told.when(since)}"
    return finding(
        "The validation loss is huge and stands still, as that of one answer for all inputs does",
        suggested(
            moderate="constant-prediction unnormalised-targets", weak="insufficient-capacity"
        ),
        cite(told, says, since, -1, level=told.last),
    )


FIRES = {
    "fell to the mean of raw targets": logged(
        loss_train=join(decay(60, 2.7e8, 6.5e6), flat(140, 6.5e6, noise=0.1)),
        loss_val=join(decay(60, 2.7e8, 5.16e6, noise=0.0), flat(140, 5.16e6, noise=1e-5)),
    ),
    "physics in raw units": logged(loss_train=flat(100, 3.6e23, noise=1e-4)),
}

SILENT = {
    "near miss: house prices, falling": logged(loss_train=decay(100, 4e10, 1e9)),
    "an ordinary plateau": logged(loss_train=flat(100, 2.3)),
}
