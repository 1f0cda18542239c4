"""Causes in the calls of the training loop and in what they reach."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import AUTOGRAD, CHECKPOINTS, DEBUGGING, MODULES, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="missing-optimizer-step",
        title="The optimizer never applies the gradients",
        what=(
            "`loss.backward()` runs, gradients exist, and nothing calls `optimizer.step()` (or "
            "only a branch that is not reached does). The weights stay bit-identical, so the loss "
            "stays at its initial value, log(number of classes) for a balanced classifier, with no "
            "more than batch noise. A learning rate of 0 looks the same from outside; here the "
            "optimizer's state is empty as well."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Call `optimizer.step()` after `loss.backward()` in every iteration (at the "
                    "accumulation boundary if gradients are accumulated)"
                ),
                expected_effect="the loss leaves {chance} within the first hundred steps",
                verify=(
                    "compare a weight before and after one iteration: `(w_after - "
                    "w_before).abs().sum() > 0`"
                ),
                if_it_fails=(
                    "if the step runs and the weights stay, the optimizer holds other parameters, "
                    "or the learning rate is 0"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask(
                "run `traindx run -- <your command>`, which counts optimizer steps and compares "
                "weights",
                "recording",
            ),
        ),
        brings_about=("class-collapse", "constant-prediction", "lr-schedule-misuse"),
        defaults={
            "chance": "log(number of classes)",
        },
        tailor=facts.classes,
    ),
    Cause(
        name="missing-zero-grad",
        title="Gradients are never cleared between steps",
        what=(
            "`backward()` adds to `.grad`, so without `zero_grad()` each update follows the sum of "
            "all gradients since the start. The gradient norm grows about linearly with the step, "
            "the loss falls at first, then oscillates with growing amplitude. It passes for a "
            "learning rate that is too high; but a lower rate only postpones it, and the norm "
            "grows even while the loss is calm. Deliberate accumulation clears after each step and "
            "shows a bounded sawtooth."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Call `optimizer.zero_grad(set_to_none=True)` once per optimizer step, before "
                    "`backward()` or right after `step()`"
                ),
                expected_effect=(
                    "grad_norm stops growing with the step count from the first steps on, and the "
                    "oscillation is gone"
                ),
                verify=(
                    "on a repeated batch with learning rate 0 the gradient norm is the same at "
                    "each step"
                ),
                if_it_fails=(
                    "if it still grows, the graph or the parameters of an earlier step are kept, "
                    "or the rate is too high"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask("log the gradient norm over the first hundred steps", "grad_norm"),
        ),
        brings_about=(
            "dead-relu",
            "exploding-activations",
            "fp16-overflow",
            "loss-scale-collapse",
            "lr-too-high",
            "missing-gradient-clipping",
            "unstable-operation",
        ),
    ),
    Cause(
        name="missing-backward",
        title="No backward pass reaches the parameters",
        what=(
            "`loss.backward()` is absent, in a branch that is not taken, or called on a tensor "
            "that does not depend on the model; every `.grad` stays None. `optimizer.step()` then "
            "skips each parameter silently, and the loss is flat at its initial value. With a "
            'missing step, by contrast, gradients exist. An error "does not require grad" means '
            "that the graph was cut: that is `detached-loss`."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Call `loss.backward()` between the forward pass and `optimizer.step()`, on "
                    "the loss that is to be minimised"
                ),
                expected_effect=(
                    "every trainable parameter has a gradient after the first iteration, and the "
                    "loss falls"
                ),
                verify=(
                    "`assert all(p.grad is not None for p in model.parameters() if "
                    "p.requires_grad)`"
                ),
                if_it_fails="if some are None, those parameters are unused or detached",
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask(
                "print `[n for n, p in model.named_parameters() if p.grad is None]` before the step"
            ),
        ),
        brings_about=("class-collapse", "constant-prediction"),
    ),
    Cause(
        name="gradients-cleared-before-step",
        title="Gradients are cleared between backward and step",
        what=(
            "`zero_grad()` stands after `backward()` and before `step()`, so the optimizer sees "
            "None or zeros. The loss stays flat (weight decay and momentum may still move the "
            "weights a little), although every call of a proper loop is present. Read the order, "
            "not the presence, of the three calls; a gradient norm logged after backward is "
            "healthy, which separates it from vanishing gradients."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Order the calls `optimizer.zero_grad(); loss.backward(); optimizer.step()`",
                expected_effect="the loss falls within the first hundred steps",
                verify=(
                    "print `next(model.parameters()).grad.norm()` right before the step: above 0"
                ),
                if_it_fails=(
                    "if a callback or wrapper clears them, search for other callers of `zero_grad`"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask("print a gradient norm immediately before `optimizer.step()`"),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "generator-mode-collapse",
            "vanishing-gradients",
        ),
    ),
    Cause(
        name="gradient-accumulation-unscaled",
        title="Gradient accumulation does not average over its micro-batches",
        what=(
            "Micro-batch losses are summed without division by the number of accumulation steps, "
            "so the gradient is that many times too large; or the optimizer steps on every "
            "micro-batch, so nothing is accumulated. The first looks like a learning rate that is "
            "too high by exactly that factor, the second like a batch that is too small. With "
            "variable lengths, dividing by the number of micro-batches still weights short ones "
            "too much: divide by the total number of tokens."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Divide and step at the boundary: `(loss / {accumulation}).backward()`, then "
                    "`if (i + 1) % {accumulation} == 0: optimizer.step(); optimizer.zero_grad()`"
                ),
                expected_effect=(
                    "grad_norm drops by the number of accumulation steps to that of the equivalent "
                    "large batch"
                ),
                verify=(
                    "on fixed data, `torch.allclose` of accumulated and single-batch gradients "
                    "(dropout and batch norm off)"
                ),
                if_it_fails=(
                    "if they differ still, the loss averages over a varying number of tokens, or "
                    "a framework divides already"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask(
                "compare the gradient of one large batch with that of the same examples accumulated"
            ),
        ),
        brings_about=(
            "batch-too-small",
            "fp16-overflow",
            "gradient-clipping-too-tight",
            "lr-too-high",
            "missing-gradient-clipping",
        ),
        defaults={
            "accumulation": "accumulation_steps",
        },
        tailor=facts.accumulation,
    ),
    Cause(
        name="clip-after-step",
        title="Gradients are clipped after the update",
        what=(
            "`clip_grad_norm_` stands behind `optimizer.step()`, where it changes gradients that "
            "have been used already and are cleared next. The configured threshold looks active in "
            "the code and in the logged norm, and has no effect on training: spikes go through in "
            "full."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Move the clip between `loss.backward()` and `optimizer.step()`",
                expected_effect="a spike of the norm no longer shows in the loss",
                verify="log the norm after the clip and before the step: never above the threshold",
                if_it_fails=(
                    "if the loss still spikes, the clip acts and the rate is too high, or the "
                    "batch is at fault"
                ),
            ),
        ),
        confirm_by=(Ask("send the training loop", "source"),),
        brings_about=(
            "exploding-activations",
            "loss-scale-collapse",
            "missing-gradient-clipping",
            "unstable-operation",
        ),
    ),
    Cause(
        name="parameters-not-in-optimizer",
        title="The optimizer does not hold the parameters that should train",
        what=(
            "The optimizer was given another model's parameters, only a part of them, or tensors "
            "that were replaced later: a head swapped after construction, a re-initialised or "
            "re-wrapped model, a generator exhausted by an earlier loop. Gradients exist for the "
            "missing parameters and their values never change. A frozen parameter has no gradient "
            "at all, which tells the two apart."
        ),
        severity=Severity.CRITICAL,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Build the optimizer last, from the final model: `optimizer = "
                    "torch.optim.AdamW(model.parameters(), lr=...)` after every change of layers, "
                    "`.to(device)` and wrapping"
                ),
                expected_effect="every trainable parameter changes in the first step",
                verify=(
                    '`{{id(p) for g in optimizer.param_groups for p in g["params"]}} >= {{id(p) '
                    "for p in model.parameters() if p.requires_grad}}` is True"
                ),
                if_it_fails=(
                    "if the sets agree and some weights still stay, those receive no gradient"
                ),
            ),
            Remedy(
                change=(
                    'Add what is missing: `optimizer.add_param_group({{"params": '
                    "new_layer.parameters()}})`"
                ),
                expected_effect="the new layer's weights move from the next step on",
                verify="compare its weight norm before and after ten steps",
                if_it_fails=(
                    "if the layer is absent from `model.parameters()` too, it is not registered"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "run `traindx run -- <your command>`, which compares the optimizer's parameters "
                "with the model's",
                "recording",
            ),
            Ask("send the code that builds both", "source"),
        ),
        brings_about=("class-collapse", "constant-prediction", "insufficient-capacity"),
    ),
    Cause(
        name="frozen-parameters",
        title="Parameters that should train have requires_grad off",
        what=(
            "`requires_grad` is False on layers that are meant to learn: a backbone that was never "
            "unfrozen, a freeze loop that matches too many names, or a typo such as "
            "`param.require_grad = True`, which sets a new attribute and raises nothing. The "
            "gradient is None, and the training loss settles where the remaining layers alone can "
            "bring it. Freezing a backbone on purpose is healthy: judge by what was intended."
        ),
        severity=Severity.HIGH,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Turn them on by the right name before the optimizer is built: `for p in "
                    "model.layer4.parameters(): p.requires_grad_(True)`"
                ),
                expected_effect=(
                    "the number of trainable parameters rises to the intended one, and the "
                    "training loss falls below its old floor"
                ),
                verify="`sum(p.numel() for p in model.parameters() if p.requires_grad)`",
                if_it_fails=(
                    "if the gradients are still None, the forward pass runs under `no_grad` or "
                    "the graph is cut"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "print `[n for n, p in model.named_parameters() if not p.requires_grad]` and "
                "compare with what you meant to freeze"
            ),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "generator-mode-collapse",
            "insufficient-capacity",
        ),
    ),
    Cause(
        name="detached-loss",
        title="The loss is cut off from the model's graph",
        what=(
            "Something between the parameters and the loss leaves autograd: `.item()`, "
            "`.detach()`, `.data`, `.numpy()`, `torch.tensor(loss)`, or an argmax. Cut wholly, "
            '`backward()` raises "element 0 of tensors does not require grad"; with '
            "`loss.requires_grad_()` added to silence it, it runs and trains nothing. Cut in part, "
            "only the branches behind the cut stop learning, which looks like frozen layers."
        ),
        severity=Severity.CRITICAL,
        specialist=AUTOGRAD,
        remedies=(
            Remedy(
                change=(
                    "Keep tensors as tensors up to `backward()`: use `torch.stack(losses).mean()` "
                    "for `torch.tensor(losses).mean()`, and `.item()` for logging only"
                ),
                expected_effect=(
                    "`loss.grad_fn` is not None and every intended layer has a gradient"
                ),
                verify=(
                    "`loss.backward(); print([n for n, p in model.named_parameters() if p.grad is "
                    "None])` is empty"
                ),
                if_it_fails="if the list names one branch, look for a detach inside that branch",
            ),
            Remedy(
                change=(
                    "Replace a hard choice by a differentiable one: softmax weights or "
                    "`F.gumbel_softmax` for argmax, a surrogate loss for a metric"
                ),
                expected_effect="gradients reach the layers that make the choice",
                verify="a finite-difference change of one weight changes the loss",
                if_it_fails=(
                    "if the objective has no gradient by nature, use a policy-gradient estimator"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the code from the model's output to `backward()`", "source"),
            Ask("print `loss.grad_fn` and follow its `next_functions`"),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "ddp-unused-parameters",
            "missing-backward",
            "unused-parameters",
        ),
    ),
    Cause(
        name="resume-without-optimizer-state",
        title="The run resumed without the optimizer's state",
        what=(
            "Only the weights were restored. Adam's moments start from zero, so the first updates "
            "after the resume are far too large or badly directed; the loss jumps at exactly that "
            "step and takes hundreds of steps to come back. A jump at the resume with the "
            "optimizer restored points to the schedule, to the data order, or to batch-norm "
            "buffers instead."
        ),
        severity=Severity.HIGH,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change=(
                    'Save and restore it: `torch.save({{"model": model.state_dict(), '
                    '"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), '
                    '"step": step}}, path)`, and load after the optimizer is built'
                ),
                expected_effect=(
                    "the loss after the resume continues within batch noise of the loss before"
                ),
                verify=(
                    "stop and resume at step 100 and compare with a run that never stopped: equal "
                    "losses on equal batches"
                ),
                if_it_fails=(
                    "if the losses are equal at first and differ later, random state or data "
                    "position is not restored"
                ),
            ),
            Remedy(
                change=(
                    "If the state is lost for good, resume with a short warm-up (a few hundred "
                    "steps)"
                ),
                expected_effect="the jump shrinks to a small ramp",
                verify="grad_norm and loss stay within their range before the stop",
                if_it_fails="if the jump is as large, weights or buffers were not fully restored",
            ),
        ),
        confirm_by=(
            Ask("send the code that resumes", "source"),
            Ask("send the keys of the checkpoint (`traindx inspect checkpoint.pt`)", "checkpoint"),
        ),
        brings_about=(
            "exploding-activations",
            "loss-scale-collapse",
            "missing-gradient-clipping",
            "missing-warmup",
        ),
    ),
)
