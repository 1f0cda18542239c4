import numpy as np

from traindx.analysis.curves import divergence
from traindx.examples import decay, join, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding

JUMP = 2.0  # times its level before; schedules move by percents between two logged points
BEFORE = 0.05  # of the run: a jump acts at once or not at all


@detector(needs=("lr", "loss"), suggests=("lr-too-high", "lr-schedule-misuse"))
def check(run: Run) -> Findings:
    """The learning rate jumps up just before the loss leaves its best level.

    ## What it detects
    A rise of the learning rate by a factor of two or more between neighbouring points, followed at
    once by a divergence that lasts.

    ## Why it matters
    The jump and the divergence in this order show the cause: a restart, a mis-joined schedule, or a
    resumed run that began its warm-up again.

    ## What to do
    Lower the rate after the jump, or correct the schedule where it jumps.

    ## When it is wrong
    Cosine restarts jump by design; they are only reported when the loss never comes back.
    """
    rate, loss = run.get("lr"), run.objective()
    if rate is None or loss is None or len(rate) < 4:
        return
    finite = loss.finite()
    found = divergence(finite.values)
    if found is None or found.is_recovering:
        return
    onset = float(finite.steps[found.onset])
    reach = BEFORE * float(finite.steps[-1] - finite.steps[0])
    positive = np.maximum(rate.values, 1e-30)
    jumps = np.flatnonzero((positive[1:] > JUMP * positive[:-1]) & (rate.values[:-1] > 0)) + 1
    close = [i for i in jumps if onset - reach <= rate.steps[i] <= onset + 0.2 * reach]
    if not close:
        return
    at = int(close[-1])
    before, after = float(rate.values[at - 1]), float(rate.values[at])
    says = f"{rate.origin.name} rose from {before:.3g} to {after:.3g} at {rate.when(at)}"
    yield finding(
        f"The learning rate jumped at {rate.when(at)}, just before the loss diverged",
        {"lr-too-high": Strength.STRONG, "lr-schedule-misuse": Strength.MODERATE},
        cite(rate, says, at - 1, at, before=before, after=after),
        shows="lr-too-high",
        is_symptom=False,
        onset=rate.steps[at],
    )


_RATE = join(np.full(200, 1e-3), np.full(60, 1e-2))
_DIVERGING = join(decay(200, 6.0, 4.0, noise=0.01), 4.0 * np.linspace(1.05, 2.0, 60))

FIRES = {"tenfold jump, then divergence": logged(loss_train=_DIVERGING, lr=_RATE)}

SILENT = {
    "near miss: a restart that the run recovers from": logged(
        loss_train=join(decay(200, 6.0, 4.0), decay(60, 5.0, 3.8)),
        lr=join(np.linspace(1e-3, 1e-5, 200), np.linspace(1e-3, 1e-5, 60)),
    ),
    "divergence at a constant rate": logged(loss_train=_DIVERGING, lr=np.full(260, 1e-3)),
    "warm-up, then divergence much later": logged(
        loss_train=_DIVERGING, lr=join(np.linspace(1e-6, 1e-3, 20), np.full(240, 1e-3))
    ),
}
