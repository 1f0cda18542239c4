"""The gradient norm jumps where the loss leaves its best level."""

from collections.abc import Mapping

import numpy as np

from traindx.analysis.curves import divergence, spread
from traindx.examples import decay, flat, join, make_run
from traindx.model.findings import Evidence, Strength, cite, cite_setting, finding, suggested
from traindx.model.run import Floats, Series
from traindx.registry import Findings, Run, detector

SPIKE = 5.0  # times the level before; healthy gradient norms vary two- or threefold
SURE = 6.0  # and beyond this many units of their own (logarithmic) spread
NEAR = 0.04  # of the run, on either side of the onset: logs are sparse, onsets are estimates
CLIPS = (
    "max_grad_norm", "grad_clip", "gradient_clip_val", "clip_grad_norm", "clip_grad", "clip_norm",
    "grad_norm_clip", "gradient_clipping", "clip",
)  # fmt: skip
STAYS_UP = 1.5  # level after the spike over the level before it: the instability feeds itself


@detector(
    needs=("grad_norm", "loss"),
    suggests=("lr-too-high", "missing-gradient-clipping", "outlier-batch"),
)
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
    onset = _onset_step(loss)
    if onset is None:
        return
    spike = _spike_near(norm, onset)
    if spike is None:
        return
    before, after = _levels(norm, spike)
    top = spike + int(np.nanargmax(norm.values[spike : spike + 3]))
    value = float(norm.values[top])
    stays_up = not np.isfinite(after) or after > STAYS_UP * before
    rates = _learning_rate(run)
    unclipped = () if stays_up else _no_clipping(run)
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
        _suggests(stays_up=stays_up),
        cite(norm, says, spike, top, before=before, after=value),
        *(unclipped or rates),
        shows=shows,
        # a norm that falls back at once does not feed itself, as steps that are too large do
        against={} if stays_up else {"lr-too-high": Strength.MODERATE},
    )


def _suggests(*, stays_up: bool) -> Mapping[str, Strength]:
    if stays_up:
        return {"lr-too-high": Strength.STRONG, "missing-gradient-clipping": Strength.MODERATE}
    return suggested(
        strong="missing-gradient-clipping", moderate="outlier-batch", weak="lr-too-high"
    )


def _onset_step(loss: Series) -> float | None:
    """The step at which the loss went wrong: the onset of a divergence, or the first NaN."""
    finite = loss.finite()
    found = divergence(finite.values)
    if found is not None:
        return None if found.is_recovering else float(finite.steps[found.onset])
    broken = np.flatnonzero(~loss.is_finite)
    if len(broken) and not loss.is_finite[broken[0] :].any():
        return float(loss.steps[broken[0]])
    return None


def _spike_near(norm: Series, onset: float) -> int | None:
    """The first gradient norm around the onset that stands out from all that came before."""
    reach = NEAR * max(float(norm.steps[-1] - norm.steps[0]), 1.0)
    spacing = float(np.median(np.diff(norm.steps))) if len(norm) > 1 else 1.0
    reach = max(reach, 1.5 * spacing)
    around = np.flatnonzero(np.abs(norm.steps - onset) <= reach)
    around = around[np.isfinite(norm.values[around])]
    if not len(around):
        return None
    earlier = _positive(norm.values[: int(around[0])])
    if len(earlier) < 5:
        earlier = _positive(norm.values[: int(around[np.argmax(norm.values[around])])])
    if len(earlier) < 5:
        return None
    logs = np.log(earlier)
    bar = float(np.median(logs)) + max(np.log(SPIKE), SURE * spread(logs))
    high = around[np.log(np.maximum(norm.values[around], 1e-30)) > bar]
    return int(high[0]) if len(high) else None


def _positive(values: Floats) -> Floats:
    return values[np.isfinite(values) & (values > 0)]


def _levels(norm: Series, spike: int) -> tuple[float, float]:
    before = float(np.median(_positive(norm.values[:spike])))
    rest = norm.values[spike + 1 : spike + 21]
    finite = _positive(rest)
    if not len(rest) or len(finite) < len(rest) / 2:
        return before, float("inf")
    return before, float(np.median(finite))


def _no_clipping(run: Run) -> tuple[Evidence, ...]:
    """A clip that is configured as switched off."""
    setting = run.config.find(*CLIPS)
    if setting is not None and str(setting.value).lower() in {"none", "null", "0", "0.0", "false"}:
        return (
            cite_setting(setting, f"gradient clipping is off ({setting.key} = {setting.value})"),
        )
    return ()


def _learning_rate(run: Run) -> tuple[Evidence, ...]:
    """The learning rate in use, where an artifact tells it."""
    for setting in run.config.learning_rates():
        return (cite_setting(setting, f"{setting.key} is {setting.value}"),)
    rate = run.get("lr")
    if rate is None or not len(rate.finite()):
        return ()
    return (cite(rate, f"the learning rate was {rate.finite().last:.3g}", -1),)


_LOSS = join(decay(200, 6.0, 4.0, noise=0.01), 4.0 * np.linspace(1.02, 1.2, 60))
_NORM_UP = join(flat(200, 1.1, noise=0.1), [44.0], flat(59, 9.0, noise=0.2))

FIRES = {
    "norm jumps with the loss and stays up": make_run(
        {"loss/train": _LOSS, "grad_norm": _NORM_UP}, config={"muon_lr": 0.01}
    ),
    "one spike derails the run": make_run(
        {
            "loss/train": _LOSS,
            "grad_norm": join(flat(200, 1.1, noise=0.1), [44.0], flat(59, 1.1, noise=0.1)),
        }
    ),
}

_FALLING = decay(260, 6.0, 4.0, noise=0.01)

SILENT = {
    "near miss: spikes without a mark on the loss": make_run(
        {"loss/train": _FALLING, "grad_norm": _NORM_UP}
    ),
    "divergence with a calm gradient norm": make_run(
        {"loss/train": _LOSS, "grad_norm": flat(260, 1.1, noise=0.2)}
    ),
}
