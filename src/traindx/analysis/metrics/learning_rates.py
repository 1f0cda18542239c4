"""The learning rate that a run logged or was configured with."""

import numpy as np

from traindx.model.findings import Evidence, Strength, cite, cite_setting
from traindx.model.run import Run, Series, as_number

SCALED = ("scale_lr", "auto_lr", "lr_find", "linear_scaling", "base_batch_size", "layer_decay",
          "lr_mult", "layerwise", "gpus", "world_size", "num_gpus")  # fmt: skip
SAME_RATE = 1.5  # times: a rate that rises more explains the jump
TINY_RATE = 1e-6  # below what any published recipe trains a network from scratch with
LASTING = 0.8  # of the points
CONSTANT_RATE = 1.05  # the highest rate over the lowest


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
