"""Graphs that are cut, freed, kept or changed under way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import ACTIVATIONS, activations, forwards, loop_steps, model_calls, steps
from bench.corpus.operators import Change, Ends, crash, many, one, operator
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last, targets


@crash("in-place-modification")
def activation_changed_in_place(source: Source, strength: float) -> Iterator[Change]:
    """The output that an activation keeps for backward is scaled in place."""
    for forward in forwards(source):
        for statement in forward.body:
            if not isinstance(statement, ast.Assign) or len(targets(statement)) != 1:
                continue
            kept = ("relu", "tanh", "sigmoid", "softmax", "exp")
            name = dotted(targets(statement)[0])
            if isinstance(statement.value, ast.Call) and last(statement.value) in kept and name:
                yield one(source.after(statement, f"{name} += 1.0"))


@crash("in-place-modification")
def weights_stepped_before_backward(source: Source, strength: float) -> Iterator[Change]:
    """The weights are changed between the forward and the backward pass."""
    for step in loop_steps(source):
        if step.made is not None and model_calls(source, step):
            model = dotted(model_calls(source, step)[0].func)
            lines = (
                "with torch.no_grad():",
                f"    for p in {model}.parameters():",
                "        p.mul_(0.999)",
            )
            if model != "self":
                yield one(source.after(step.made, *lines))


@crash("graph-freed")
def backward_twice(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        yield one(source.after(step.backward, source.code(step.backward)))


@crash("graph-retained-across-steps", accepted=("graph-freed",))
def running_loss_backpropagated(source: Source, strength: float) -> Iterator[Change]:
    """The smoothed loss carries the graphs of earlier steps; the error speaks of a freed graph."""
    for step in loop_steps(source):
        loop = source.around(step.backward, ast.For)
        plain = source.code(step.backward) == f"{step.loss}.backward()"
        if isinstance(loop, ast.For) and loop.body is step.block and plain:
            smooth = source.replace(
                step.backward,
                f"smoothed = 0.9 * smoothed + 0.1 * {step.loss}\n"
                f"{source.indent(step.backward)}smoothed.backward()",
            )
            yield many(smooth, source.before(loop, "smoothed = 0.0"))


@crash("graph-retained-across-steps", accepted=("graph-freed",))
def state_not_detached(source: Source, strength: float) -> Iterator[Change]:
    """The hidden state goes from batch to batch with its graph."""
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or len(targets(node)) != 1:
            continue
        name = dotted(targets(node)[0])
        value = node.value
        is_detached = isinstance(value, ast.Call) and "detach" in last(value)
        if (
            is_detached
            and name
            and name in {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        ):
            in_step = source.around(node, ast.For)
            if in_step is not None:
                yield one(source.replace(node, "pass"))


@crash("no-grad-training", accepted=("detached-loss",))
def forward_without_gradient(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        for call in model_calls(source, step)[-1:]:
            statement = source.statement(call)
            if isinstance(statement, ast.Assign) and statement in step.block:
                text = (
                    f"with torch.no_grad():\n{source.indent(statement)}    {source.code(statement)}"
                )
                if "\n" not in source.code(statement) and len(model_calls(source, step)) == 1:
                    yield one(source.replace(statement, text))


@crash("no-grad-training")
def gradients_left_off(source: Source, strength: float) -> Iterator[Change]:
    """Gradients are turned off for good before training starts."""
    for step in loop_steps(source):
        loop = source.around(step.backward, ast.For)
        while loop is not None and isinstance(parent := source.around(loop, ast.For), ast.For):
            loop = parent
        if isinstance(loop, ast.For):
            yield one(source.before(loop, "torch.set_grad_enabled(False)"))


WRONG_FUNCTION = """class Activation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return BACK

"""
BACKS = {1.0: "grad * (x < 0)", 2.0: "-grad * (x > 0)", 3.0: "grad * x"}


@operator("incorrect-custom-backward", strengths=(1, 2, 3))
def activation_with_wrong_slope(source: Source, strength: float) -> Iterator[Change]:
    """A ReLU of one's own whose backward is not its derivative."""
    found = [
        a
        for a in activations(source)
        if last(a) in ACTIVATIONS and not isinstance(a.args[0], ast.Call)
    ] or [a for a in activations(source) if last(a) in ACTIVATIONS]
    nested = [a for a in found if any(b is not a and b in ast.walk(a) for b in found)]
    if found and not nested and "import torch\n" in source.text:
        text = WRONG_FUNCTION.replace("BACK", BACKS[strength]).splitlines()
        top = source.at_top("", *text)
        uses = [source.replace(a.func, "Activation.apply") for a in found if len(a.args) == 1]
        lines = Change((top, *uses), top)
        yield lines


@operator("non-differentiable-operation", accepted=("detached-loss",), ends=Ends.EITHER)
def outputs_rounded(source: Source, strength: float) -> Iterator[Change]:
    """Rounding has no slope: the gradient behind it is zero."""
    for step in steps(source):
        for call in model_calls(source, step):
            parent = source.parents[call]
            if isinstance(parent, ast.Assign) and len(targets(parent)) != 1:
                continue
            if len(model_calls(source, step)) == 1:
                yield one(source.wrap(call, "torch.round(", ")"))


@operator("non-differentiable-operation", accepted=("detached-loss", "frozen-parameters"))
def features_binarised(source: Source, strength: float) -> Iterator[Change]:
    """The sign of the hidden features: what lies below gets no gradient."""
    for forward in forwards(source):
        for statement in forward.body:
            if not isinstance(statement, ast.Assign) or len(targets(statement)) != 1:
                continue
            value = statement.value
            if isinstance(value, ast.Call) and "self." in source.code(value):
                yield one(source.wrap(value, "torch.sign(", ")"))


@crash("non-differentiable-operation", accepted=("detached-loss",))
def classes_chosen_ahead_of_loss(source: Source, strength: float) -> Iterator[Change]:
    """The loss is computed from the winning class: an integer without a gradient."""
    for step in steps(source):
        for call in model_calls(source, step):
            statement = source.statement(call)
            if len(model_calls(source, step)) == 1 and statement is step.made:
                new = f"{step.loss} = {source.code(call)}.argmax(-1).float().mean()"
                yield one(source.replace(statement, new))
