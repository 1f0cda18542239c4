"""The learning rate that a run logged or was configured with."""

import numpy as np

from traindx.model.findings import Evidence, Strength, cite, cite_setting
from traindx.model.run import Run, Series, Setting, as_number

SCALED = ("scale_lr", "auto_lr", "lr_find", "linear_scaling", "base_batch_size", "layer_decay",
          "lr_mult", "layerwise", "gpus", "world_size", "num_gpus")  # fmt: skip
SAME_RATE = 1.5  # times: a rate that rises more explains the jump
TINY_RATE = 1e-6  # below what any published recipe trains a network from scratch with
LASTING = 0.8  # of the points
CONSTANT_RATE = 1.05  # the highest rate over the lowest
VANISHED = 1e-8  # of its peak; no schedule means to end there, and float32 rounds such steps away
RATE_POINTS = 5
EARLY_END = 0.2  # of the run spent at zero; schedules that end at zero spend a point or two there
ALWAYS = 0.99  # of the run
APART = 1.5  # times; schedules warm up to the configured value or decay from it
APART_POINTS = 10


def highest_rate(run: Run) -> tuple[float, Evidence] | None:
    """Return the highest learning rate that is logged, or else configured, and where."""
    series = run.get("lr")
    if series is not None and len(series.finite()):
        finite = series.finite()
        top = int(np.argmax(finite.values))
        rate = float(finite.values[top])
        return (rate, cite(finite, f"{finite.origin.name} is at most {rate:.2g}", top))
    settings = list(run.config.learning_rates())
    if not settings:
        return None
    highest = max(settings, key=lambda s: as_number(s.value) or 0.0)
    return as_number(highest.value) or 0.0, cite_setting(highest)


def is_rate_scaled(run: Run) -> bool:
    """Tell whether a setting scales the configured learning rate."""
    told = " ".join(s.key.lower() for s in run.config.settings)
    return any(word in told for word in SCALED) or bool(run.matching("lr/*"))


def cite_rate_in_use(run: Run) -> tuple[Evidence, ...]:
    """The learning rate in use, where an artifact tells it."""
    for setting in run.config.learning_rates():
        return (cite_setting(setting, f"{setting.key} is {setting.value}"),)
    rate = run.get("lr")
    if rate is None or not len(rate.finite()):
        return ()
    return (cite(rate, f"the learning rate was {rate.finite().last:.3g}", -1),)


def rate_rises(run: Run, loss: Series, at: int) -> bool:
    """Tell whether the learning rate jumps up at a point of the loss."""
    rate = run.get("lr")
    if rate is None or rate.axis != loss.axis or len(rate) < 2:
        return False
    here = int(np.searchsorted(rate.steps, loss.steps[at]).clip(1, len(rate) - 1))
    return float(rate.values[here]) > SAME_RATE * float(rate.values[here - 1])


def do_evaluations_differ(run: Run) -> bool:
    """Tell whether evaluations differ: weights that stand still give the same one again.

    Not surely: the running statistics of a batch norm move without a step.
    """
    val = run.get("loss/val")
    return val is not None and len(np.unique(val.values[len(val) // 2 :])) > 1


def cite_tiny_rate(run: Run) -> tuple[Evidence, ...]:
    """A learning rate that is too small by any measure, if the artifacts tell of one."""
    series = run.get("lr")
    if series is not None and len(series.finite()):
        peak = int(np.argmax(series.finite().values))
        value = float(series.finite().values[peak])
        if 0.0 < value < TINY_RATE:
            return (cite(series.finite(), f"the learning rate is never above {value:.2g}", peak),)
        return ()
    settings = list(run.config.learning_rates())
    numbers = [as_number(s.value) or 0.0 for s in settings]
    if numbers and 0.0 < max(numbers) < TINY_RATE:
        return (cite_setting(settings[int(np.argmax(numbers))]),)
    return ()


def is_rate_constant(run: Run) -> bool:
    """Tell whether the logged learning rate keeps its level."""
    rate = run.get("lr")
    finite = rate.finite().values if rate is not None else np.empty(0)
    return len(finite) > 0 and float(finite.max()) <= CONSTANT_RATE * float(finite.min())


def refuted_by_rate(run: Run) -> dict[str, Strength]:
    """A logged rate that is above zero, and stays there, is not zero."""
    rate = run.get("lr")
    values = rate.finite().values if rate is not None else np.empty(0)
    is_positive = bool(np.any(values > 0.0)) and float(np.mean(values > 0.0)) > LASTING
    return {"lr-zero": Strength.STRONG} if is_positive else {}


def vanished_since(rate: Series) -> tuple[int, float, bool] | None:
    """Return where a rate falls to nothing for good, for which share, and whether to zero."""
    is_zero = rate.values <= VANISHED * float(np.nanmax(rate.values))
    share = float(is_zero.mean())
    if share < EARLY_END or len(rate) < RATE_POINTS:
        return None
    if share <= ALWAYS and not bool(is_zero[-1]):
        return None  # zero in warm-up or between restarts
    is_exact = bool(np.all(rate.values[is_zero] == 0.0))
    moving = np.flatnonzero(~is_zero)
    return int(moving[-1]) + 1 if len(moving) else 0, share, is_exact


def zero_settings(run: Run) -> list[Setting]:
    """Return the configured learning rates where all are zero."""
    processes = run.recording.processes if run.recording is not None else ()
    # what an optimizer was found to have is 0 until the first step of a warm-up
    found = {p.path for p in processes}
    rates = [r for r in run.config.learning_rates() if r.artifact not in found]
    return rates if all(as_number(r.value) == 0.0 for r in rates) else []


def unapplied_rate(run: Run) -> tuple[Series, int, Setting] | None:
    """Return the logged rate, where it is highest, and the one configured rate it never is."""
    rate = run.get("lr")
    in_force = ("checkpoint.", "optimizer.") if run.recording is not None else ("checkpoint.",)
    settings = [s for s in run.config.learning_rates() if not s.key.startswith(in_force)]
    values = {as_number(s.value) for s in settings}
    if rate is None or len(values) != 1 or len(rate.finite()) < APART_POINTS or is_rate_scaled(run):
        return None
    wanted, finite = values.pop(), rate.finite()
    top = int(np.argmax(finite.values))
    used = float(finite.values[top])
    still_rising = top >= len(finite) - 2 and used < (wanted or 0.0)
    if not wanted or used <= 0 or still_rising or 1 / APART < used / wanted < APART:
        return None
    return finite, top, settings[0]
