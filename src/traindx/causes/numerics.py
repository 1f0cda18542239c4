"""Causes in the arithmetic: NaN, infinity, overflow."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import DATA, DEBUGGING, PRECISION, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="nan-in-data",
        title="NaN or infinity enters with the training data",
        what=(
            "A batch carries NaN or Inf in its inputs or labels, and one such value is enough: the "
            "loss turns NaN, the gradient turns NaN, and from the next update on every weight is "
            "NaN. The sign is a loss that was healthy one step earlier, with no growth of the "
            "gradient norm before it. A learning rate that is too high announces itself by rising "
            "gradients; bad data does not, and it strikes at the same example whatever the "
            "learning rate."
        ),
        severity=Severity.CRITICAL,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Repair or drop the bad records where they are made, and assert it in the "
                    "dataset: `assert torch.isfinite(x).all(), path` in `__getitem__`"
                ),
                expected_effect=(
                    "no non-finite loss from the first step on; the loss curve before the old "
                    "onset is unchanged"
                ),
                verify=(
                    "iterate over the whole DataLoader once without a model and count batches "
                    "where `torch.isfinite(x).all()` is false: it must be 0"
                ),
                if_it_fails=(
                    "if the data are clean and the NaN is made inside the model, look for the "
                    "first module with a non-finite output"
                ),
            ),
            Remedy(
                change=(
                    "Guard the preprocessing that makes them: a division by a standard deviation "
                    "of 0, a logarithm of 0, missing values read as NaN from CSV or parquet"
                ),
                expected_effect=(
                    "constant columns come out as 0 and missing values as a value you chose"
                ),
                verify="print the per-column minimum, maximum and count of NaN after preprocessing",
                if_it_fails=(
                    "search the raw files, not the pipeline; `numpy.isnan` over each file finds "
                    "the source"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "run `traindx run -- <your command>`, which keeps and names the first batch with "
                "NaN or Inf",
                "recording",
            ),
            Ask("assert that every batch is finite before it enters the model"),
        ),
        brings_about=(
            "exploding-activations",
            "fp16-overflow",
            "loss-scale-collapse",
            "outlier-batch",
            "unstable-operation",
        ),
    ),
    Cause(
        name="unstable-operation",
        title="An operation leaves its numerical domain{operation}",
        what=(
            "An operation is evaluated where it or its derivative is not finite: log(0), x/0, sqrt "
            "or norm at 0, exp of a large number, 0·inf, a fractional power of a negative number, "
            "acos at ±1. The forward value may look harmless while the derivative is infinite, as "
            "with sqrt(0). It differs from divergence in that weights and gradient norm are "
            "ordinary up to the very step, and in that the same batch reproduces it with any "
            "learning rate."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Rewrite {where} in its stable form: `log_softmax` for log(softmax), "
                    "`BCEWithLogitsLoss` for a sigmoid with BCELoss, `logsumexp`, `log1p`, "
                    "`expm1`, `atan2` for acos"
                ),
                expected_effect="the loss and all gradients stay finite on the batch that failed",
                verify=(
                    "replay the failing batch under `torch.autograd.set_detect_anomaly(True)`: no "
                    "error"
                ),
                if_it_fails=(
                    "if a second operation is at fault, or its input was already non-finite, "
                    "check what enters it"
                ),
            ),
            Remedy(
                change=(
                    "Move the argument away from the edge before the operation: `(x * "
                    "x).sum(-1).add(1e-12).sqrt()`, `x / (y + 1e-8)`; with `torch.where`, make the "
                    "argument safe inside the branch, since the unused branch still gets a gradient"
                ),
                expected_effect=(
                    "the derivative is bounded by the epsilon, so the gradient norm has no "
                    "isolated infinity"
                ),
                verify="`torch.autograd.gradcheck` in float64 with an input at the edge",
                if_it_fails=(
                    "if the argument should never reach the edge, find out why it does (a dead "
                    "unit, an empty mask, a zero vector)"
                ),
            ),
        ),
        confirm_by=(
            Ask("run `traindx run -- <your command>`, which names the operation", "recording"),
            Ask("run once with `torch.autograd.set_detect_anomaly(True)` and send the traceback"),
        ),
        brings_about=("loss-scale-collapse",),
        defaults={
            "operation": "",
            "where": "the operation that anomaly mode names",
        },
        tailor=facts.nan_operation,
    ),
    Cause(
        name="fp16-overflow",
        title="Half precision overflows",
        what=(
            "A value exceeds 65504, the largest number of fp16, and becomes infinite; the next "
            "subtraction or product makes it NaN. Typical places are attention scores before the "
            "softmax, sums and variances over many elements, exponentials, and losses computed "
            "inside autocast. The same run in fp32 or bf16 is healthy, which separates it from a "
            "learning rate that is too high: that one diverges in every precision."
        ),
        severity=Severity.CRITICAL,
        specialist=PRECISION,
        remedies=(
            Remedy(
                change="{bf16}",
                expected_effect=(
                    "no non-finite values at the old onset; the loss follows the fp32 curve within "
                    "noise"
                ),
                verify=(
                    "rerun past the onset and log the largest activation: it may exceed 65504 "
                    "without harm"
                ),
                if_it_fails=(
                    "if the overflow is not one of range, activations grow without bound, and the "
                    "learning rate or the initialisation is at fault"
                ),
            ),
            Remedy(
                change=(
                    'Keep the overflowing operation in fp32: `with torch.autocast("cuda", '
                    "enabled=False): loss = criterion(out.float(), y)`"
                ),
                expected_effect=(
                    "that module's output is finite; speed is nearly unchanged, for one operation "
                    "seldom dominates"
                ),
                verify=(
                    "print `x.abs().max()` before the operation: in fp16 it must stay well under "
                    "65504"
                ),
                if_it_fails="walk up, for the input of that operation was already infinite",
            ),
        ),
        confirm_by=(
            Ask(
                "rerun a few hundred steps in fp32 or bf16 from the same checkpoint; if the NaN "
                "is gone, it was the range of fp16"
            ),
        ),
        brings_about=("loss-scale-collapse", "unstable-operation"),
        defaults={
            "bf16": (
                'Use bfloat16: `torch.autocast("cuda", dtype=torch.bfloat16)`; it has the range '
                "of fp32 and needs no GradScaler"
            ),
        },
        tailor=facts.half_precision,
    ),
    Cause(
        name="loss-scale-collapse",
        title="The gradient scaler keeps lowering its scale and skips steps",
        what=(
            "Every time a scaled gradient is not finite, `GradScaler` halves the scale and skips "
            "the update. A few skips at the start, or one every couple of thousand steps, are how "
            "the search for the scale works. A scale that falls towards 1 and below means that "
            "gradients are non-finite whatever the scale: the fault lies in the model or the data, "
            "and no setting of the scaler cures it. Meanwhile the loss stands still, because no "
            "update is applied."
        ),
        severity=Severity.HIGH,
        specialist=PRECISION,
        remedies=(
            Remedy(
                change=(
                    "Find what makes the gradients non-finite: replay one skipped batch in fp32 "
                    "with `torch.autograd.set_detect_anomaly(True)`"
                ),
                expected_effect=(
                    "the failing operation is named; once it is repaired the scale settles at "
                    "2**10 to 2**17 and skips become rare"
                ),
                verify="count the skipped steps: under 1 % after the first hundred",
                if_it_fails=(
                    "if the batch is finite in fp32, it is the range of fp16, so use bfloat16 or "
                    "keep that operation in fp32"
                ),
            ),
            Remedy(
                change="{bf16}",
                expected_effect="no loss scaling, no skipped steps",
                verify=(
                    "the loss falls from the first steps on, and the weights change at every step"
                ),
                if_it_fails=(
                    "if bf16 also fails, the run diverges, so look at learning rate and data"
                ),
            ),
        ),
        confirm_by=(Ask("log `scaler.get_scale()` and the unscaled gradient norm for every step"),),
        defaults={
            "bf16": "Use bfloat16 autocast and drop the GradScaler",
        },
        tailor=facts.half_precision,
    ),
    Cause(
        name="fully-masked-attention",
        title="A row of the attention mask hides every position",
        what=(
            "Where every key of a query is masked with −inf, the softmax computes exp(−inf)/0 and "
            "returns NaN, which then spreads through the residual stream. It happens with fully "
            "padded sequences, with a causal mask combined with left padding, and with a mask of "
            'the wrong polarity (True means "keep" in `scaled_dot_product_attention` and '
            '"hide" in `nn.MultiheadAttention`). It depends on the batch, not on the step, and '
            "so looks random; the weights are healthy before it."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Check the polarity of the mask for the API in use, and let every query see at "
                    "least itself: `mask = causal | padding; mask.diagonal(dim1=-2, "
                    "dim2=-1).fill_(False)` with True = hidden"
                ),
                expected_effect=(
                    "attention outputs are finite for every batch; rows of padding carry values "
                    "that the loss does not count"
                ),
                verify="assert `not mask.all(-1).any()` before attention over a whole epoch",
                if_it_fails=(
                    "if NaN enters earlier, look at the inputs of the first attention block"
                ),
            ),
            Remedy(
                change="Drop empty sequences in the collate function and pad to the right",
                expected_effect="no batch contains a sequence of length 0",
                verify="assert `lengths.min() > 0` in `collate_fn`",
                if_it_fails="if an additive mask of −1e9 overflows in fp16, use a boolean mask",
            ),
        ),
        confirm_by=(
            Ask("send the attention code", "source"),
            Ask("print `mask.all(-1).any()` (with True = hidden) for the failing batch"),
        ),
        brings_about=("loss-scale-collapse", "unstable-operation"),
    ),
    Cause(
        name="exploding-activations",
        title="Activations grow from layer to layer or from step to step",
        what=(
            "The size of the activations multiplies at each layer, or creeps up over training, "
            "until a softmax saturates or a value overflows. Growth with depth at step 0 is a "
            "matter of initialisation or missing normalisation; growth over steps at a fixed depth "
            "is a matter of the learning rate, of missing weight decay, or of attention logits "
            "that drift. The activations rise many steps before the loss does, whereas a bad batch "
            "shows no such lead."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Normalise inside the block: pre-norm residuals, `x = x + "
                    "f(nn.LayerNorm(d)(x))`, or RMSNorm; for drifting attention logits normalise "
                    "queries and keys"
                ),
                expected_effect=(
                    "the standard deviation of the activations is within a factor of ten between "
                    "first and last layer, and stays so"
                ),
                verify=(
                    "print `out.std()` per layer with forward hooks at step 0 and at the old onset"
                ),
                if_it_fails="if the growth starts at one layer, look at its initialisation",
            ),
            Remedy(
                change=(
                    "Scale the initialisation: `nn.init.kaiming_normal_` for ReLU, and residual "
                    "output projections by 1/sqrt(2·depth)"
                ),
                expected_effect="activations at step 0 are of order 1 at every depth",
                verify="a forward pass of one batch before training",
                if_it_fails=(
                    "if it is fine at step 0 and grows later, the updates are too large, so lower "
                    "the learning rate"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "run `traindx run -- <your command>`, which records the activation scale of every "
                "layer",
                "recording",
            ),
            Ask("log the largest activation of each layer"),
        ),
        brings_about=(
            "fp16-overflow",
            "loss-scale-collapse",
            "saturated-activations",
            "unstable-operation",
        ),
    ),
)
