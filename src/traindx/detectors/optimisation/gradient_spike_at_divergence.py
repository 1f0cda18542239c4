import numpy as np

from traindx.analysis.metrics.gradient_norms import (
    cite_clip_off,
    levels_around,
    onset_step,
    spike_near,
)
from traindx.analysis.metrics.learning_rates import cite_rate_in_use
from traindx.examples import decay, flat, join, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding, suggested

FEEDS_ITSELF = suggested("lr-too-high", "missing-gradient-clipping")
COMES_BACK = suggested("missing-gradient-clipping", "outlier-batch", "lr-too-high")
STAYS_UP = 1.5  # level after the spike over the level before it: the instability feeds itself


@detector(needs=("grad_norm", "loss"), suggests=tuple(COMES_BACK))
def check(run: Run) -> Findings:
    """The gradient norm jumps at the step where the loss leaves its best level.

    ## What it detects
    A gradient norm far above its own level and spread, at the onset of a divergence or of NaN.

    ## Why it matters
    It ties the divergence to the size of the updates. A norm that stays high shows steps that are
    too large: each one leads to a steeper place. A norm that falls back at once shows a rare large
    gradient that clipping would have stopped.

    ## What to do
    Lower the learning rate if the norm stays high; clip the gradient norm if it was one spike.

    ## When it is wrong
    A gradient norm logged after clipping cannot show a spike; then nothing is said.
    """
    loss, norm = run.objective(), run.get("grad_norm")
    if loss is None or norm is None:
        return
    onset = onset_step(loss)
    if onset is None:
        return
    spike = spike_near(norm, onset)
    if spike is None:
        return
    before, after = levels_around(norm, spike)
    top = spike + int(np.nanargmax(norm.values[spike : spike + 3]))
    value = float(norm.values[top])
    stays_up = not np.isfinite(after) or after > STAYS_UP * before
    rates = cite_rate_in_use(run)
    unclipped = () if stays_up else cite_clip_off(run)
    shows = "lr-too-high" if stays_up and rates else None
    if unclipped:
        shows = "missing-gradient-clipping"
    says = (
        f"{norm.origin.name} rose {value / before:.0f}-fold, from {before:.3g} to {value:.4g}, "
        f"at {norm.when(top)}"
    )
    where = loss.when(int(np.searchsorted(loss.steps, onset).clip(0, len(loss) - 1)))
    yield finding(
        f"The gradient norm spikes at {norm.when(spike)}, where the loss diverges ({where})",
        FEEDS_ITSELF if stays_up else COMES_BACK,
        cite(norm, says, spike, top, before=before, after=value),
        *(unclipped or rates),
        shows=shows,
        # a norm that falls back at once does not feed itself, as steps that are too large do
        against={} if stays_up else {"lr-too-high": Strength.MODERATE},
    )


_LOSS = join(decay(200, 6.0, 4.0, noise=0.01), 4.0 * np.linspace(1.02, 1.2, 60))
_NORM_UP = join(flat(200, 1.1, noise=0.1), [44.0], flat(59, 9.0, noise=0.2))

FIRES = {
    "norm jumps with the loss and stays up": logged(
        loss_train=_LOSS, grad_norm=_NORM_UP, config={"muon_lr": 0.01}
    ),
    "one spike derails the run": logged(
        loss_train=_LOSS,
        grad_norm=join(flat(200, 1.1, noise=0.1), [44.0], flat(59, 1.1, noise=0.1)),
    ),
}

_FALLING = decay(260, 6.0, 4.0, noise=0.01)

SILENT = {
    "near miss: spikes without a mark on the loss": logged(loss_train=_FALLING, grad_norm=_NORM_UP),
    "divergence with a calm gradient norm": logged(
        loss_train=_LOSS, grad_norm=flat(260, 1.1, noise=0.2)
    ),
}
