"""Causes in the use of mixed precision."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import PRECISION, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="clip-without-unscale",
        title="Scaled gradients are clipped",
        what=(
            "Under a GradScaler gradients are multiplied by the scale (65536 at the start). "
            "Clipping them before `scaler.unscale_` compares that product with the threshold, so "
            "every step is cut down to almost nothing: training crawls, and the effective step "
            "changes whenever the scale does. The logged norm is thousands of times too large."
        ),
        severity=Severity.HIGH,
        specialist=PRECISION,
        remedies=(
            Remedy(
                change=(
                    "`scaler.scale(loss).backward(); scaler.unscale_(optimizer); "
                    "torch.nn.utils.clip_grad_norm_(model.parameters(), {clip_value}); "
                    "scaler.step(optimizer); scaler.update()`"
                ),
                expected_effect=(
                    "the norm falls to that of an fp32 run, and the loss falls at its usual pace"
                ),
                verify="the logged norm no longer follows the loss scale",
                if_it_fails="if it is still slow, the threshold itself is too low",
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask("log the norm that the clip returns together with `scaler.get_scale()`"),
        ),
        brings_about=("gradient-clipping-too-tight", "lr-too-low"),
        defaults={
            "clip_value": "1.0",
        },
        tailor=facts.clipping,
    ),
    Cause(
        name="missing-scaler-update",
        title="The gradient scaler is never updated",
        what=(
            "Without `scaler.update()` the scale never adapts and the scaler's state per optimizer "
            'is not reset: the second `scaler.step` raises "step() has already been called since '
            'the last update()", the second `unscale_` likewise. Where a wrapper swallows that, '
            "the scale stays at 65536 and steps with infinite gradients are skipped forever."
        ),
        severity=Severity.HIGH,
        specialist=PRECISION,
        remedies=(
            Remedy(
                change=(
                    "Call `scaler.update()` once per iteration, after all `scaler.step(...)` calls"
                ),
                expected_effect=(
                    "the scale changes: halved after an overflow, doubled after 2000 good steps"
                ),
                verify="print the scale at steps 1, 100 and 2500",
                if_it_fails="if it only falls, gradients are non-finite at any scale",
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask("log `scaler.get_scale()` over some hundred steps", "loss_scale"),
        ),
    ),
    Cause(
        name="scaler-bypassed",
        title="The optimizer steps on gradients that are still scaled",
        what=(
            "`scaler.scale(loss).backward()` is followed by `optimizer.step()` in place of "
            "`scaler.step(optimizer)`. The gradients are thousands of times too large, and "
            "non-finite ones are applied instead of skipped. SGD diverges at once; Adam hides it, "
            "for it divides by the gradient's size, until one infinite gradient destroys the "
            "weights."
        ),
        severity=Severity.HIGH,
        specialist=PRECISION,
        remedies=(
            Remedy(
                change="`scaler.step(optimizer); scaler.update()` in place of `optimizer.step()`",
                expected_effect=(
                    "grad_norm falls by the scale, infinite steps are skipped, and the loss falls"
                ),
                verify="compare the weights after one step with those of an fp32 step: about equal",
                if_it_fails="if a closure or a framework steps elsewhere, search for `.step(`",
            ),
            Remedy(
                change="With bfloat16 remove the scaler: plain `loss.backward(); optimizer.step()`",
                expected_effect="no scaled gradients exist",
                verify="grad_norm equals that of an fp32 run",
                if_it_fails="if it differs, suspect two scalers (the framework's and yours)",
            ),
        ),
        confirm_by=(Ask("send the training loop", "source"),),
        brings_about=(
            "exploding-activations",
            "lr-too-high",
            "missing-gradient-clipping",
            "unstable-operation",
        ),
    ),
    Cause(
        name="half-precision-weights",
        title="The weights themselves are kept in half precision",
        what=(
            "`model.half()` stores fp16 weights, so an update smaller than about 1/1000 of a "
            "weight is rounded away and learning stalls once steps get small; Adam's epsilon of "
            "1e-8 is 0 in fp16 and leads to a division by zero. GradScaler refuses with "
            '"Attempting to unscale FP16 gradients". bf16 weights do not overflow but lose still '
            "larger updates, up to 1/250 of a weight. For inference half weights are fine."
        ),
        severity=Severity.HIGH,
        specialist=PRECISION,
        remedies=(
            Remedy(
                change=(
                    "Load and keep the weights in float32 (no `.half()`, "
                    "`torch_dtype=torch.float32`) and run the forward pass in `torch.autocast`"
                ),
                expected_effect=(
                    "the loss goes on falling where it had stalled; memory for weights doubles"
                ),
                verify="`next(model.parameters()).dtype` is float32 while activations are half",
                if_it_fails=(
                    "if memory does not allow it, train adapters in fp32 on a half-precision base"
                ),
            ),
            Remedy(
                change="{bf16}",
                expected_effect="no overflow, no scaler",
                verify="the loss follows the fp32 run within noise for 500 steps",
                if_it_fails=(
                    "if it stalls late, the weights are still bf16; keep float32 master weights"
                ),
            ),
        ),
        confirm_by=(Ask("print `{p.dtype for p in model.parameters()}` before training"),),
        brings_about=(
            "dtype-mismatch",
            "fp16-overflow",
            "loss-scale-collapse",
            "lr-too-low",
            "unstable-operation",
            "vanishing-gradients",
        ),
        defaults={
            "bf16": (
                'Keep float32 weights and run the forward pass in `torch.autocast("cuda", '
                "dtype=torch.bfloat16)`"
            ),
        },
        tailor=facts.half_precision,
    ),
    Cause(
        name="deprecated-amp-api",
        title="The code uses the deprecated torch.cuda.amp interface",
        what=(
            "`torch.cuda.amp.autocast` and `torch.cuda.amp.GradScaler` still work and warn; they "
            "are bound to CUDA and to be removed. It is housekeeping and explains no failure; "
            "`autocast` without `dtype` means fp16 on CUDA and bfloat16 on the CPU."
        ),
        severity=Severity.LOW,
        only_harms=("deprecat", "warning", "futurewarning"),
        specialist=PRECISION,
        remedies=(
            Remedy(
                change=(
                    '`torch.autocast("cuda", dtype=torch.float16)` for '
                    '`torch.cuda.amp.autocast()`, and `torch.amp.GradScaler("cuda")` for '
                    "`torch.cuda.amp.GradScaler()`"
                ),
                expected_effect="the FutureWarning is gone, and results are bit-identical",
                verify="ten steps before and after: equal losses",
                if_it_fails="if they differ, the old call had other arguments; compare dtype",
            ),
        ),
        confirm_by=(Ask("send the warning or the source", "source"),),
    ),
)
