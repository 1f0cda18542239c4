"""The gradient scaler was called out of order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import explain, make_failed_run, match_root

HALF = re.compile(r"Attempting to unscale FP16 gradients")
# Each message with what it means and what it leaves open. An update without a check: neither
# `scaler.step` nor `unscale_` was called. A second step: the update between the two is missing. An
# `unscale_` after a step: the same, or the two in the wrong order. Two `unscale_` without a step
# between them: one too many, as of each micro-batch.
MEANINGS: dict[str, tuple[str, Mapping[str, Strength]]] = {
    r"No inf checks were recorded prior to update": (
        "The scaler is updated and has stepped no optimizer: the optimizer is stepped past it",
        {"scaler-bypassed": Strength.STRONG, "api-misuse": Strength.WEAK},
    ),
    r"No inf checks were recorded for this optimizer": (
        "The scaler steps an optimizer none of whose parameters got a gradient: no backward on the "
        "scaled loss, a loss cut off from them, or other parameters than the model's",
        {
            "detached-loss": Strength.MODERATE,
            "parameters-not-in-optimizer": Strength.MODERATE,
            "missing-backward": Strength.MODERATE,
            "frozen-parameters": Strength.WEAK,
            "api-misuse": Strength.WEAK,
        },
    ),
    r"unscale_\(\) has already been called on this optimizer since the last update": (
        "The gradients are unscaled twice in one step",
        {"api-misuse": Strength.STRONG, "missing-scaler-update": Strength.WEAK},
    ),
    r"unscale_\(\) is being called after step": (
        "The gradients are unscaled after a step, with no update in between",
        {"missing-scaler-update": Strength.STRONG, "api-misuse": Strength.MODERATE},
    ),
    r"step\(\) has already been called since the last update": (
        "The scaler steps twice without an update in between",
        {"missing-scaler-update": Strength.STRONG, "api-misuse": Strength.WEAK},
    ),
    r"Attempted .{0,20}_scale is None": (
        "The scaler is used before it has scaled a loss",
        {"api-misuse": Strength.STRONG},
    ),
}
PATTERNS = {re.compile(pattern): meaning for pattern, meaning in MEANINGS.items()}


@detector(
    needs=("failure",),
    suggests=("api-misuse", "missing-scaler-update", "scaler-bypassed", "half-precision-weights",
              "detached-loss", "parameters-not-in-optimizer", "missing-backward",
              "frozen-parameters"),
)  # fmt: skip
def check(run: Run) -> Iterator[Finding]:
    """The gradient scaler is used in an order that it refuses.

    ## What it detects
    "No inf checks were recorded for this optimizer" or "prior to update", "unscale_() has already
    been called", "unscale_() is being called after step()", "step() has already been called since
    the last update()", and "Attempting to unscale FP16 gradients", which says that the weights
    themselves are half precision.

    ## Why it matters
    Scaled gradients are only right in the order scale, backward, unscale, clip, step, update.

    ## What to do
    Follow that order once per optimizer step; under accumulation unscale only in the step that
    updates. Keep weights in float32 and let autocast cast.

    ## When it is wrong
    A step in which all gradients are None (frozen model, empty batch) records no check either.
    """
    hit = match_root(run, HALF, *PATTERNS)
    if hit is None:
        return
    failure, found = hit
    if found.re is HALF:
        claim = "The gradients are fp16, because the weights are: the scaler needs float32 weights"
        yield explain(run, failure, claim, shows="half-precision-weights")
        return
    claim, guesses = PATTERNS[found.re]
    if "missing-backward" in guesses and _has_no_backward(run):
        claim = "The scaler steps an optimizer, and nothing in the source calls backward"
        yield explain(run, failure, claim, shows="missing-backward")
        return
    yield explain(run, failure, claim, suggests=guesses)


def _has_no_backward(run: Run) -> bool:
    modules = project_of(run).modules
    return bool(modules) and not any("backward" in line for m in modules for line in m.lines)


FIRES = {
    "no gradient": make_failed_run(
        "AssertionError: No inf checks were recorded for this optimizer.", "scaler.step(optimizer)"
    ),
    "no backward in the source": make_failed_run(
        "AssertionError: No inf checks were recorded for this optimizer.",
        "scaler.step(optimizer)",
        sources={"train.py": "scaler.scale(loss)\nscaler.step(optimizer)\nscaler.update()\n"},
    ),
    "twice": make_failed_run(
        "RuntimeError: unscale_() has already been called on this optimizer since the last "
        "update()."
    ),
    "a step past the scaler": make_failed_run(
        "AssertionError: No inf checks were recorded prior to update.", "scaler.update()"
    ),
    "never updated": make_failed_run(
        "RuntimeError: step() has already been called since the last update()."
    ),
    "half precision": make_failed_run("ValueError: Attempting to unscale FP16 gradients."),
}

SILENT = {
    "near miss: two types in a layer": make_failed_run(
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
