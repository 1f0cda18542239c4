from traindx.analysis.errors.failing_lines import never_calls_backward
from traindx.analysis.errors.messages import causes_in, finding, known_error
from traindx.analysis.errors.precision_messages import SCALER
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=causes_in(SCALER))
def check(run: Run) -> Findings:
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
    known = known_error(run, SCALER)
    if known is None:
        return
    if known.kind == "no gradient" and never_calls_backward(run):
        claim = "The GradScaler steps the optimizer, but the source never calls backward()"
        yield finding(known, claim, cause="missing-backward")
    else:
        yield finding(known)


FIRES = {
    "no gradient": failed(
        "AssertionError: No inf checks were recorded for this optimizer.", "scaler.step(optimizer)"
    ),
    "no backward in the source": failed(
        "AssertionError: No inf checks were recorded for this optimizer.",
        "scaler.step(optimizer)",
        sources={"train.py": "scaler.scale(loss)\nscaler.step(optimizer)\nscaler.update()\n"},
    ),
    "twice": failed(
        "RuntimeError: unscale_() has already been called on this optimizer since the last "
        "update()."
    ),
    "a step past the scaler": failed(
        "AssertionError: No inf checks were recorded prior to update.", "scaler.update()"
    ),
    "never updated": failed(
        "RuntimeError: step() has already been called since the last update()."
    ),
    "half precision": failed("ValueError: Attempting to unscale FP16 gradients."),
}

SILENT = {
    "near miss: two types in a layer": failed(
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float"
    ),
    "another error": failed("KeyError: 'label'"),
}
