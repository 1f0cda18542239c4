"""Causes in the recorded graph and its backward pass."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import AUTOGRAD, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="in-place-modification",
        title="A tensor that backward needs was changed in place{inplace_fact}",
        what=(
            "Autograd keeps references to tensors it needs again in the backward pass; `x += y`, "
            "`x *= m`, `x.relu_()`, `x[i] = v` or `inplace=True` overwrite them, and the version "
            "counter in the message (is at version 2, expected 1) tells by how many changes. The "
            "operation that is named produced the tensor; the change stands later in the code. "
            "With recurrent or adversarial training an `optimizer.step()` between forward and "
            "backward is such a change too."
        ),
        severity=Severity.HIGH,
        specialist=AUTOGRAD,
        remedies=(
            Remedy(
                change=(
                    "{inplace_where} out of place: `x = x * mask` for `x *= mask`, "
                    "`inplace=False`, `torch.where` or `index_put` for slice assignment"
                ),
                expected_effect="`loss.backward()` completes",
                verify="one forward and backward pass, and every parameter has a gradient",
                if_it_fails=(
                    "if the message names another tensor, repeat with anomaly mode, for there is "
                    "a second change"
                ),
            ),
            Remedy(
                change=(
                    "If an optimizer step lies between, compute all losses before stepping, or run "
                    "the forward pass again after it"
                ),
                expected_effect="each backward pass uses weights of its own forward pass",
                verify="the order forward → backward → step holds for each optimizer",
                if_it_fails="if hidden state from before the step is still used, detach it",
            ),
        ),
        confirm_by=(
            Ask(
                "run once with `torch.autograd.set_detect_anomaly(True)`; the traceback then "
                "names the forward line"
            ),
        ),
        brings_about=("rank-failed-first",),
        defaults={
            "inplace_fact": "",
            "inplace_where": "Write the operation that changes the tensor",
        },
        tailor=facts.inplace,
    ),
    Cause(
        name="graph-freed",
        title="Backward runs twice through one graph",
        what=(
            "After `backward()` the saved tensors are freed, so a second pass through any part of "
            'the graph raises "Trying to backward through the graph a second time". Either the '
            "loss is used twice, or a part of the graph (hidden state, cached features, a shared "
            "loss term) is carried from one iteration to the next. `retain_graph=True` silences "
            "the message and keeps every old graph alive: right only where two losses share one "
            "forward pass."
        ),
        severity=Severity.HIGH,
        specialist=AUTOGRAD,
        remedies=(
            Remedy(
                change="Sum the losses and call backward once: `(loss_a + loss_b).backward()`",
                expected_effect="one backward call per forward pass, no error",
                verify="the loop runs for ten iterations",
                if_it_fails=(
                    "if the first iteration passes and the second fails, something carries the "
                    "graph over; detach it"
                ),
            ),
            Remedy(
                change=(
                    "Recompute or detach what is reused: `features = features.detach()`, `hidden = "
                    "hidden.detach()`"
                ),
                expected_effect="memory is constant over steps, and the error is gone",
                verify="memory after steps 10 and 100 is equal",
                if_it_fails="if the reused part must learn, compute it inside the loop",
            ),
        ),
        confirm_by=(
            Ask("send the training loop, with everything that survives an iteration", "source"),
        ),
        brings_about=("rank-failed-first",),
    ),
    Cause(
        name="graph-retained-across-steps",
        title="State carried between steps keeps the last step's graph",
        what=(
            "A hidden state, memory, running average or previous output is used in the next step "
            "without `detach()`. The graph then reaches back over all steps: backward fails with "
            '"a second time" or "modified by an inplace operation", or with '
            "`retain_graph=True` each step takes longer and uses more memory than the one before. "
            "Time per step that grows linearly separates it from a plain memory leak."
        ),
        severity=Severity.HIGH,
        specialist=AUTOGRAD,
        remedies=(
            Remedy(
                change=(
                    "Detach at the boundary: `hidden = hidden.detach()` (for an LSTM "
                    "`tuple(h.detach() for h in hidden)`) at the start of each step"
                ),
                expected_effect="step time and memory are flat, and no `retain_graph` is needed",
                verify="compare step 10 and step 200",
                if_it_fails=(
                    "if it still grows, a list or running total holds tensors with a graph; store "
                    "`.item()` or `.detach()`"
                ),
            ),
            Remedy(
                change=(
                    "Average tensors for logging without a graph: `running = 0.99 * running + 0.01 "
                    "* loss.detach()`"
                ),
                expected_effect="`running.requires_grad` is False",
                verify="print `running.grad_fn`: None",
                if_it_fails="look for attributes of the model that `forward` assigns",
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask("log step time and memory for the first hundred steps"),
        ),
        brings_about=(
            "activation-memory",
            "graph-freed",
            "graph-kept-alive",
            "in-place-modification",
        ),
    ),
    Cause(
        name="no-grad-training",
        title="The training forward pass runs without gradients",
        what=(
            "The loss is computed under `torch.no_grad()`, `inference_mode()` or after a "
            "`torch.set_grad_enabled(False)` that nobody undid, often in an evaluation helper. "
            '`backward()` raises "does not require grad"; if only a part of the model runs so, '
            "that part alone does not learn."
        ),
        severity=Severity.CRITICAL,
        specialist=AUTOGRAD,
        remedies=(
            Remedy(
                change=(
                    "Leave the forward pass outside of the context manager, and use `with` blocks "
                    "or decorators, not the global switch"
                ),
                expected_effect="`loss.requires_grad` is True and gradients exist",
                verify="`assert torch.is_grad_enabled()` at the head of the training step",
                if_it_fails=(
                    "if gradients are enabled and the loss still has no graph, something detaches "
                    "it"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask(
                "print `torch.is_grad_enabled()` and `loss.requires_grad` in front of `backward()`"
            ),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "detached-loss",
            "missing-backward",
            "unused-parameters",
        ),
    ),
    Cause(
        name="incorrect-custom-backward",
        title="A custom autograd function returns a wrong gradient",
        what=(
            "The hand-written `backward` of a `torch.autograd.Function` does not match its "
            "`forward`: a missing factor, a forgotten sum over broadcast dimensions, a gradient "
            "for the wrong input, a tensor changed after it was saved. Training runs and converges "
            "badly or drifts. A comparison with finite differences settles it; straight-through "
            "estimators differ from them on purpose."
        ),
        severity=Severity.HIGH,
        specialist=AUTOGRAD,
        remedies=(
            Remedy(
                change=(
                    "Correct `backward` until gradcheck passes: one returned gradient per input of "
                    "`forward` (None where it needs none), each summed to its input's shape"
                ),
                expected_effect=(
                    "`gradcheck` returns True, and the loss falls as with built-in operations"
                ),
                verify="`torch.autograd.gradcheck(Fn.apply, (x.double().requires_grad_(),))`",
                if_it_fails=(
                    "if it passes in float64 and fails in training, suspect precision, or "
                    "`ctx.saved_tensors` changed in place"
                ),
            ),
            Remedy(
                change=(
                    "Write the forward pass with differentiable torch operations and delete the "
                    "custom function"
                ),
                expected_effect="identical outputs and correct gradients, perhaps slower",
                verify="compare outputs and `.grad` of both versions",
                if_it_fails="if the gradients agree, the function was right",
            ),
        ),
        confirm_by=(
            Ask(
                "run `torch.autograd.gradcheck(fn, inputs)` with float64 inputs that require "
                "gradients, and send its output"
            ),
        ),
        brings_about=(
            "exploding-activations",
            "lr-too-high",
            "missing-gradient-clipping",
            "unstable-operation",
            "vanishing-gradients",
        ),
    ),
    Cause(
        name="non-differentiable-operation",
        title="The path to the loss holds an operation without a gradient",
        what=(
            "argmax, round, floor, sign, comparison, integer casts and numpy calls have no "
            "gradient, or one that is 0 everywhere. The parameters before them get None or zeros "
            "and never change, while those behind them learn. With round and sign the gradient "
            "exists and is exactly zero, so no error is raised."
        ),
        severity=Severity.HIGH,
        specialist=AUTOGRAD,
        remedies=(
            Remedy(
                change=(
                    "Use a smooth stand-in: softmax-weighted average for argmax, "
                    "`F.gumbel_softmax(logits, tau=1.0, hard=True)` for a choice, sigmoid for a "
                    "threshold"
                ),
                expected_effect="the layers before the operation get a non-zero gradient",
                verify="`p.grad.abs().sum() > 0` for the first layer",
                if_it_fails="if it is non-zero and nothing improves, lower the temperature slowly",
            ),
            Remedy(
                change="Straight-through for rounding: `x + (x.round() - x).detach()`",
                expected_effect=(
                    "forward values are rounded, the gradient passes as if they were not"
                ),
                verify="the gradient of the input equals that of the output",
                if_it_fails="if training oscillates, use a lower learning rate for that part",
            ),
        ),
        confirm_by=(
            Ask("send the forward pass", "source"),
            Ask("print the gradient of the first layer after one backward pass"),
        ),
        brings_about=(
            "ddp-unused-parameters",
            "detached-loss",
            "missing-backward",
            "unused-parameters",
            "vanishing-gradients",
        ),
    ),
)
