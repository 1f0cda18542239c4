"""Logged gradient norms: spikes, clips and steps without a gradient."""

import numpy as np

from traindx.analysis.curves import divergence, spread
from traindx.model.findings import Evidence, cite, cite_setting
from traindx.model.run import Floats, Run, Series, as_number

SPIKE = 5.0  # times the level before; healthy gradient norms vary two- or threefold
SURE = 6.0  # and beyond this many units of their own (logarithmic) spread
NEAR = 0.04  # of the run, on either side of the onset: logs are sparse, onsets are estimates
CLIPS = (
    "max_grad_norm", "grad_clip", "gradient_clip_val", "clip_grad_norm", "clip_grad", "clip_norm",
    "grad_norm_clip", "gradient_clipping",
)  # fmt: skip
ADAPTIVE = ("adam", "lamb", "lion", "adafactor", "rmsprop", "adagrad", "muon", "sophia")
ZEROS_IN_A_ROW = 5  # points in a row up to the end; a batch without a signal comes alone


def onset_step(loss: Series) -> float | None:
    """The step at which the loss went wrong: the onset of a divergence, or the first NaN."""
    finite = loss.finite()
    found = divergence(finite.values)
    if found is not None:
        return None if found.is_recovering else float(finite.steps[found.onset])
    broken = np.flatnonzero(~loss.is_finite)
    if len(broken) and not loss.is_finite[broken[0] :].any():
        return float(loss.steps[broken[0]])
    return None


def spike_near(norm: Series, onset: float) -> int | None:
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


def levels_around(norm: Series, spike: int) -> tuple[float, float]:
    """Return the level of a gradient norm before a spike and after it."""
    before = float(np.median(_positive(norm.values[:spike])))
    rest = norm.values[spike + 1 : spike + 21]
    finite = _positive(rest)
    if not len(rest) or len(finite) < len(rest) / 2:
        return before, float("inf")
    return before, float(np.median(finite))


def cite_clip_off(run: Run) -> tuple[Evidence, ...]:
    """A clip that is configured as switched off."""
    setting = run.config.find(*CLIPS, "clip")
    if setting is not None and str(setting.value).lower() in {"none", "null", "0", "0.0", "false"}:
        return (
            cite_setting(setting, f"gradient clipping is off ({setting.key} = {setting.value})"),
        )
    return ()


def clip_in_use(run: Run) -> tuple[float, tuple[Evidence, ...]]:
    """The clip in use, as it was recorded, or else as it was configured; 0 if none is known."""
    used = run.get("clip_max")
    if used is not None and len(used.finite()):
        limit = float(np.median(used.finite().values))
        return limit, (cite(used.finite(), f"gradients are clipped at {limit:.4g}", -1),)
    setting = run.config.find(*CLIPS, "max_norm")
    if setting is None:
        return 0.0, ()
    return as_number(setting.value) or 0.0, (cite_setting(setting),)


def is_optimizer_adaptive(run: Run) -> bool:
    """Tell whether the configured optimizer divides by the size of the gradient."""
    named = [str(s.value).lower() for s in run.config.settings if "optim" in s.key.lower()]
    return any(word in name for name in named for word in ADAPTIVE)


def does_loss_fall(run: Run) -> bool:
    """A loss that falls shows that the norm was not measured."""
    loss = run.main_loss()
    finite = None if loss is None else loss.finite()
    if finite is None or len(finite) < ZEROS_IN_A_ROW:
        return False
    third = max(1, len(finite) // 3)
    first, last = np.median(finite.values[:third]), np.median(finite.values[-third:])
    return bool(last < first - 0.02 * abs(first))
