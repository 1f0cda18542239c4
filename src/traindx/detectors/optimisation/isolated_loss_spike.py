import numpy as np

from traindx.analysis.curves import divergence, isolated_spikes
from traindx.analysis.metrics.objective import finite_objective
from traindx.examples import decay, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding

RARE = 0.01  # of all points; what happens more often is the noise of this run
MANY_POINTS = 50  # fewer cannot tell a spike from noise


@detector(needs=("loss",), suggests=("outlier-batch", "missing-gradient-clipping"))
def check(run: Run) -> Findings:
    """Single loss values stand far above the points around them, and the run goes on.

    ## What it detects
    Rare points that are several times the level around them and far outside the run's own spread,
    and that leave no mark on what follows.

    ## Why it matters
    Mostly it does not: one hard or broken batch. It is worth a look at the data of that step.

    ## What to do
    Look at the batch of that step. Clip the gradient norm if spikes become more frequent.

    ## When it is wrong
    It is a remark and never an alarm. A spike that the run does not survive is a divergence.
    """
    finite = finite_objective(run, MANY_POINTS)
    if finite is None:
        return
    if divergence(finite.values) is not None:
        return
    spikes = isolated_spikes(finite.values)
    if not len(spikes) or len(spikes) > max(1, RARE * len(finite)):
        return
    worst = int(spikes[np.argmax(finite.values[spikes])])
    around = float(np.median(finite.values[max(0, worst - 5) : worst + 6]))
    value = float(finite.values[worst])
    says = (
        f"{finite.origin.name} is {value:.4g} at {finite.when(worst)}, {value / around:.0f} times "
        f"the points around it, and comes back at once"
    )
    yield finding(
        f"Isolated loss spikes ({len(spikes)}) from which the run recovers",
        {"outlier-batch": Strength.MODERATE, "missing-gradient-clipping": Strength.WEAK},
        cite(finite, says, worst, value=value, around=around),
        onset=finite.steps[spikes[0]],
        strength=Strength.WEAK,
        is_symptom=False,
    )


_SPIKY = decay(400)
_SPIKY[150] = 9.0

FIRES = {"one bad batch": logged(loss_train=_SPIKY)}

SILENT = {
    "noisy": logged(loss_train=decay(400, noise=0.4)),
    "near miss: heavy-tailed noise all along": logged(
        loss_train=decay(400) * np.exp(np.random.default_rng(0).standard_t(2, 400))
    ),
    "few points": logged(loss_train=[1.0, 0.9, 5.0, 0.8, 0.7]),
}
