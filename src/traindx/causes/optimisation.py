"""Causes in how the weights are updated."""

from __future__ import annotations

from traindx.causes.cause import Cause, Facts
from traindx.evidence import Remedy, Severity
from traindx.model import Run, as_number

DEBUGGING = "debugging-techniques"


def _learning_rate(run: Run) -> Facts:
    """Name the learning rate by the key the user set it with, and half of it."""
    for setting in run.config.matching("*lr*"):
        value = as_number(setting.value)
        if value and "min" not in setting.key and "decay" not in setting.key:
            return {"lr_change": f"{setting.key} from {setting.value} to {value / 2:g}"}
    series = run.get("lr")
    if series is not None and len(series.finite()):
        peak = float(series.finite().values.max())
        return {"lr_change": f"the peak learning rate from {peak:g} to {peak / 2:g}"}
    return {}


CAUSES = (
    Cause(
        name="lr-too-high",
        title="The learning rate is too high",
        what=(
            "The steps are larger than the loss surface allows: an update overshoots, the next "
            "gradient is larger, and the loss oscillates, climbs or ends in NaN."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Reduce {lr_change}",
                expected_effect="grad_norm stays near its median and the loss falls past the step of onset",
                verify="rerun past the step of onset with the gradient norm logged",
                if_it_fails="halve it once more; if the onset does not move, it is not the learning rate",
            ),
            Remedy(
                change="Clip the gradient norm (max_norm=1.0) before the optimizer step",
                expected_effect="no update is larger than the clip allows; single spikes leave no mark on the loss",
                verify="log the norm before clipping: it may spike, the loss must not",
                if_it_fails="clipping that acts on every step means that the learning rate is still too high",
            ),
        ),
        confirm_by="the gradient norm around the onset, or a rerun with half the learning rate",
        brings_about=(
            "exploding-activations",
            "unstable-operation",
            "missing-gradient-clipping",
            "fp16-overflow",
            "loss-scale-collapse",
            "dead-relu",
        ),
        defaults={"lr_change": "the learning rate by half"},
        tailor=_learning_rate,
    ),
)
