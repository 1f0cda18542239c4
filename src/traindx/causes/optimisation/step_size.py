"""Causes in the size of the update steps."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import DEBUGGING, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="lr-too-high",
        title="The learning rate is too high{lr_in_use}",
        what=(
            "The steps are larger than the curvature of the loss allows: an update overshoots, the "
            "next gradient is larger, and the loss oscillates, climbs or ends in NaN. The gradient "
            "norm rises before the loss does or together with it, and the onset moves when the "
            "learning rate is changed. A bad batch or an unstable operation strikes without that "
            "lead; an onset within the first few hundred steps that a warm-up removes is "
            "`missing-warmup`."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Reduce {lr_cut}",
                expected_effect=(
                    "grad_norm stays near its median and the loss falls past the step of onset"
                ),
                verify="rerun past the step of onset with the gradient norm logged",
                if_it_fails=(
                    "halve it once more; if the onset does not move, it is not the learning rate"
                ),
            ),
            Remedy(
                change=(
                    "Clip the gradient norm between backward and step: "
                    "`torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm={clip_value})`"
                ),
                expected_effect=(
                    "no update is larger than the clip allows; single spikes leave no mark on the "
                    "loss"
                ),
                verify=(
                    "log the norm that `clip_grad_norm_` returns, which is the one before "
                    "clipping: it may spike, the loss must not"
                ),
                if_it_fails=(
                    "clipping that acts on every step means that the learning rate is still too "
                    "high"
                ),
            ),
        ),
        confirm_by=(
            Ask("log the gradient norm around the onset", "grad_norm"),
            Ask("rerun from the last good checkpoint with half the learning rate"),
        ),
        brings_about=(
            "catastrophic-forgetting",
            "class-collapse",
            "constant-prediction",
            "dead-relu",
            "exploding-activations",
            "fp16-overflow",
            "loss-scale-collapse",
            "policy-entropy-collapse",
            "repetition-collapse",
            "saturated-activations",
            "unstable-operation",
        ),
        defaults={
            "lr_cut": "the learning rate by half",
            "lr_in_use": "",
            "clip_value": "1.0",
        },
        tailor=facts.all_of(facts.learning_rate, facts.clipping),
    ),
    Cause(
        name="lr-too-low",
        title="The learning rate is too low{lr_in_use}",
        what=(
            "The loss falls steadily and hardly at all: gradients are healthy, the updates are "
            "tiny against the weights (ratio far below 1e-4), and validation follows training. Too "
            "little capacity looks alike at the end but falls quickly first and then stops; a "
            "missing `optimizer.step()` leaves the weights exactly unchanged."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Raise {lr_raise}",
                expected_effect=(
                    "the loss of the first epoch falls several times as fast, with a grad_norm "
                    "that stays steady"
                ),
                verify="compare the loss after 200 steps with that of this run",
                if_it_fails=(
                    "if it is no faster, the updates do not reach the weights (wrong parameters "
                    "in the optimizer, clipping too tight) or the gradients are uninformative"
                ),
            ),
            Remedy(
                change=(
                    "Sweep it once: raise the learning rate exponentially from 1e-6 to 1 over some "
                    "hundred steps and take a value three to ten times below the one at which the "
                    "loss turns up"
                ),
                expected_effect="a value within a factor of three of the best one",
                verify=(
                    "plot loss against learning rate on a logarithmic axis: it has a clear descent"
                ),
                if_it_fails=(
                    "if there is no descent at any rate, it is not the learning rate; look at "
                    "loss and labels"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "rerun a few hundred steps with ten times the learning rate, or log the ratio of "
                "update to weight norm"
            ),
        ),
        brings_about=("class-collapse", "constant-prediction"),
        defaults={
            "lr_raise": "the learning rate tenfold",
            "lr_in_use": "",
        },
        tailor=facts.learning_rate,
    ),
    Cause(
        name="lr-zero",
        title="The learning rate is zero",
        what=(
            "The optimizer runs and changes nothing, because the learning rate is 0: set so, "
            "rounded away by an integer division, or taken to 0 by a schedule whose length is "
            "shorter than the run. With AdamW the weight decay is multiplied by the same rate, so "
            "the weights do not move at all. The loss is flat from the step at which the rate "
            "reaches 0, while gradients keep their size; at the planned end of a decay it is "
            "normal."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Let the schedule end where the run ends: give it {run_length} as its length "
                    "(`T_max`, `total_steps`, `num_training_steps`), counted in the unit in which "
                    "it is stepped"
                ),
                expected_effect=(
                    "the logged rate is above 0 until the last step, and the loss keeps falling "
                    "where it had gone flat"
                ),
                verify="print the rate at the start, the middle and the end of the run",
                if_it_fails=(
                    "if the rate is above 0 and the weights still do not change, look for "
                    "`missing-optimizer-step` and `parameters-not-in-optimizer`"
                ),
            ),
            Remedy(
                change=(
                    'Set a positive learning rate in every parameter group: print `[g["lr"] for '
                    "g in optimizer.param_groups]` after construction"
                ),
                expected_effect="every group trains",
                verify="the norm of a weight in each group differs after one step",
                if_it_fails=(
                    "if a warm-up that starts at 0 and is never stepped keeps it there, step the "
                    "scheduler"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                'log `scheduler.get_last_lr()` (or `optimizer.param_groups[0]["lr"]`) for every '
                "step",
                "lr",
            ),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "generator-mode-collapse",
        ),
        defaults={
            "run_length": "the real number of optimizer steps",
        },
        tailor=facts.run_length,
    ),
    Cause(
        name="lr-schedule-misuse",
        title="The learning-rate schedule is stepped wrongly",
        what=(
            "The scheduler advances in another unit than it was built for, before the optimizer, "
            "never, or from the start again after a resume. Stepped per batch with a length in "
            "epochs, the rate is gone after a fraction of an epoch; stepped per epoch with a "
            "length in steps, it never leaves the warm-up. The logged rate shows it at once: its "
            'turning points fall at the wrong step. PyTorch warns of "lr_scheduler.step() before '
            'optimizer.step()", and also does so when `optimizer.step()` is never called, or when '
            "a gradient scaler skipped the first step."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Step once per unit of the schedule, after the optimizer: `optimizer.step(); "
                    "scheduler.step()` in the batch loop with a length of {run_length}, or once at "
                    "the end of an epoch with a length in epochs"
                ),
                expected_effect="the rate peaks and ends where it was planned",
                verify=(
                    "plot the rate of a dry run: `[(optimizer.step(), scheduler.step(), "
                    "scheduler.get_last_lr()[0]) for _ in range(n)]`"
                ),
                if_it_fails=(
                    "if a framework steps it as well (Lightning's `interval`, the HF Trainer, "
                    "Accelerate per process), step it in one place only"
                ),
            ),
            Remedy(
                change=(
                    'Save and restore it: `scheduler.load_state_dict(checkpoint["scheduler"])` '
                    "after the optimizer's state"
                ),
                expected_effect="the rate after a resume continues at its value before",
                verify="print the rate before saving and after loading",
                if_it_fails=(
                    "if the scheduler is rebuilt after loading, move the load behind construction"
                ),
            ),
        ),
        confirm_by=(
            Ask("log the learning rate for every step", "lr"),
            Ask("send the lines that build and step the scheduler", "source"),
        ),
        brings_about=("lr-too-high", "lr-too-low", "lr-zero"),
        defaults={
            "run_length": "epochs × steps per epoch",
        },
        tailor=facts.run_length,
    ),
    Cause(
        name="missing-warmup",
        title="Training starts at the full learning rate without warm-up",
        what=(
            "In the first steps Adam's moment estimates rest on few gradients and normalisation "
            "layers have not settled, so full-sized updates throw the weights far. Transformers "
            "and large batches are the usual victims: a spike or a divergence within the first few "
            "hundred steps, after which the run recovers to a worse level or not at all. If the "
            "same rate fails later, or fails with a warm-up too, it is simply too high."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Raise the rate linearly over {warmup_length}: "
                    "`torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1e-3, "
                    "total_iters=warmup_steps)`, joined to the decay by `SequentialLR`"
                ),
                expected_effect="no spike of loss or grad_norm in the first thousand steps",
                verify="overlay the first thousand steps of both runs",
                if_it_fails=(
                    "if the divergence moves to the end of the warm-up, the peak rate is too high"
                ),
            ),
            Remedy(
                change=(
                    "For post-norm transformers move the normalisation in front of each sub-layer "
                    "(`norm_first=True` in `nn.TransformerEncoderLayer`)"
                ),
                expected_effect=(
                    "the gradient at initialisation no longer concentrates in the last layers, and "
                    "the need for warm-up fades"
                ),
                verify="compare per-layer gradient norms at step 0",
                if_it_fails=(
                    "if the instability does not come from the start of training, look at data "
                    "and initialisation"
                ),
            ),
        ),
        confirm_by=(Ask("rerun the first thousand steps with a linear warm-up, all else equal"),),
        brings_about=(
            "dead-relu",
            "exploding-activations",
            "fp16-overflow",
            "loss-scale-collapse",
            "missing-gradient-clipping",
            "unstable-operation",
        ),
        defaults={
            "warmup_length": "the first 1 to 5 % of all steps",
        },
        tailor=facts.warmup,
    ),
    Cause(
        name="missing-gradient-clipping",
        title="Rare large gradients are applied unclipped",
        what=(
            "Most steps are calm; now and then a gradient is tens or hundreds of times larger than "
            "the median, and that one update undoes thousands of others. The loss jumps at exactly "
            "such a step. Recurrent networks, reinforcement learning and long sequences have such "
            "heavy tails by nature. If the large gradients come from one bad record, repair the "
            "record; if they grow steadily, the learning rate is the cause and a clip only delays "
            "the end."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Clip between backward and step: "
                    "`torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm={clip_value})`; "
                    "under AMP call `scaler.unscale_(optimizer)` first"
                ),
                expected_effect=(
                    "isolated spikes of grad_norm remain visible before clipping and leave no mark "
                    "on the loss"
                ),
                verify=(
                    "log the value that `clip_grad_norm_` returns and the share of clipped steps: "
                    "it should be some per cent"
                ),
                if_it_fails=(
                    "if more than half of the steps are clipped, the norm grows as a whole, so "
                    "lower the learning rate"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "log the gradient norm for every step, so that spikes of norm and loss can be "
                "laid side by side",
                "grad_norm",
            ),
            Ask("rerun with `clip_grad_norm_(model.parameters(), 1.0)` before the step"),
        ),
        brings_about=(
            "dead-relu",
            "exploding-activations",
            "fp16-overflow",
            "loss-scale-collapse",
            "unstable-operation",
        ),
        defaults={
            "clip_value": "1.0",
        },
        tailor=facts.clipping,
    ),
    Cause(
        name="gradient-clipping-too-tight",
        title="The gradient clip acts on nearly every step",
        what=(
            "The clipping threshold lies far below the ordinary gradient norm, so each update is "
            "scaled down by the same large factor and the run behaves as if its learning rate were "
            "that much lower. With Adam a constant factor cancels, so only the relative weight of "
            "steps is lost; with SGD progress nearly stops. A logged norm that sits exactly at the "
            "threshold is the sign. A clip that acts on some per cent of the steps is doing its "
            "work."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Raise {clip_raise}, to about the 90th percentile of the unclipped norm",
                expected_effect="the clip acts on 1 to 10 % of the steps and the loss falls faster",
                verify="count `norm > max_norm` over an epoch",
                if_it_fails=(
                    "if the loss spikes instead, the clip had been compensating for a learning "
                    "rate that is too high"
                ),
            ),
            Remedy(
                change=(
                    "Check what the norm is taken of: gradients that are still multiplied by the "
                    "loss scale, or summed over accumulation steps, are larger by that factor"
                ),
                expected_effect="the unclipped norm drops to its real size",
                verify="compare the norm with that of an fp32 run of one batch",
                if_it_fails="if the norm is truly large, normalise inputs or targets",
            ),
        ),
        confirm_by=(
            Ask(
                "log the norm that `clip_grad_norm_` returns (it is the one before clipping) and "
                "count the steps above the threshold",
                "grad_norm",
            ),
            Ask("rerun with ten times the threshold"),
        ),
        brings_about=("lr-too-low",),
        defaults={
            "clip_raise": "the clipping threshold tenfold",
        },
        tailor=facts.clipping,
    ),
    Cause(
        name="weight-decay-too-high",
        title="Weight decay shrinks the weights faster than the loss can grow them{decay_in_use}",
        what=(
            "The penalty outweighs the gradient of the loss: weight norms fall throughout, "
            "activations shrink, and training and validation loss stay high together. In Adam (as "
            "opposed to AdamW) the decay passes through the adaptive scaling and acts otherwise "
            "than its number suggests. Too little capacity looks the same on the curves but leaves "
            "the weight norms alone."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Reduce {decay_cut}",
                expected_effect=(
                    "weight_norm stops falling after the first epochs, and the training loss goes "
                    "below its old floor"
                ),
                verify="overlay weight_norm and training loss of both runs",
                if_it_fails=(
                    "if the norm still falls, the learning rate multiplies the decay, so lower "
                    "that, or the loss itself drives weights to zero"
                ),
            ),
            Remedy(
                change=(
                    "Leave biases and normalisation parameters out: two parameter groups, the one "
                    "with `p.ndim < 2` at `weight_decay=0`"
                ),
                expected_effect="the scales of the normalisation layers stay near 1",
                verify="print the `weight` of the norm layers after an epoch",
                if_it_fails="if they still shrink, the gradient does it, not the decay",
            ),
        ),
        confirm_by=(
            Ask("log the weight norm per layer", "weight_norm|layers/*/weight_norm"),
            Ask("rerun one epoch without weight decay"),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "insufficient-capacity",
            "representation-collapse",
            "vanishing-gradients",
        ),
        defaults={
            "decay_cut": "the weight decay tenfold",
            "decay_in_use": "",
        },
        tailor=facts.weight_decay,
    ),
    Cause(
        name="batch-too-small",
        title="The batch is too small for its gradient to carry a signal{batch_in_use}",
        what=(
            "The gradient of one batch is mostly noise: the loss jitters about a level instead of "
            "descending, and the jitter falls with the square root of the batch size. Averaging a "
            "window of steps still shows a trend if there is one. A learning rate that is too high "
            "also jitters, but lowering it then speeds progress up, whereas here it only smooths "
            "the curve."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Raise {batch_raise}; where memory does not allow it, accumulate gradients "
                    "over several micro-batches"
                ),
                expected_effect=(
                    "the step-to-step spread of the loss halves for each factor of four, and the "
                    "smoothed loss falls further"
                ),
                verify="compare the standard deviation of loss differences over 500 steps",
                if_it_fails=(
                    "if the spread stays, it comes from the data (label noise, outliers), not "
                    "from sampling"
                ),
            ),
            Remedy(
                change="Keep the batch and lower the learning rate with a decay towards the end",
                expected_effect=(
                    "the loss descends in the last third of the run as the noise averages out"
                ),
                verify="the moving average over an epoch falls after the decay begins",
                if_it_fails="if it is flat at any rate, the signal is missing; check the labels",
            ),
        ),
        confirm_by=(
            Ask(
                "rerun with eight times the batch (by gradient accumulation) and the same number "
                "of examples"
            ),
        ),
        brings_about=("batchnorm-small-batch",),
        defaults={
            "batch_raise": "the batch size four- to eightfold",
            "batch_in_use": "",
        },
        tailor=facts.batch_size,
    ),
    Cause(
        name="config-not-applied",
        title="A configured value is not the value that was used{mismatch}",
        what=(
            "The run used another value than the configuration states: an override that came too "
            "early or under another key, a default that won, a value loaded with the checkpoint, a "
            "framework that computes its own. The logged value is what counts. The symptoms are "
            "those of the value in force, so the search goes wrong as long as the configured one "
            "is believed."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Set the value where it is read last, and print it from the object that uses "
                    'it: `optimizer.param_groups[0]["lr"]`, not from the config'
                ),
                expected_effect="the printed value and the configured one agree from step 0 on",
                verify="compare them in an assertion at start-up",
                if_it_fails=(
                    "if another place overrides it later (a scheduler, a resume, a callback), log "
                    "it at every step"
                ),
            ),
            Remedy(
                change=(
                    "After `optimizer.load_state_dict(...)`, set the groups again: loading "
                    "restores the old learning rate and weight decay"
                ),
                expected_effect="the value after a resume is the new one",
                verify="print the groups after loading",
                if_it_fails="if the scheduler restores its `base_lrs` as well, set those too",
            ),
        ),
        confirm_by=(
            Ask(
                "print the effective settings once after everything is built "
                "(`optimizer.param_groups`, the model's config, `len(loader)`) and send that with "
                "the configuration"
            ),
        ),
        brings_about=(
            "batch-too-small",
            "gradient-clipping-too-tight",
            "lr-too-high",
            "lr-too-low",
            "lr-zero",
            "missing-gradient-clipping",
            "missing-warmup",
            "precision-unused",
            "weight-decay-too-high",
        ),
        defaults={
            "mismatch": "",
        },
        tailor=facts.applied_rate,
    ),
)
