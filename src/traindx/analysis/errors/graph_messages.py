"""What autograd says: graphs that are missing, freed, changed or not differentiable."""

from __future__ import annotations

from traindx.analysis.errors.messages import Message, Table

BACKWARD_OF_MANY_VALUES: Table = (
    Message(
        r"grad can be implicitly created only for scalar outputs",
        "The loss has several values, and backward() needs a scalar"
        "[[: {culprit}||, most often because of reduction='none']]",
        shows="api-misuse",
    ),
)
INPUT_OUTSIDE_THE_GRAPH: Table = (
    Message(
        r"differentiated Tensors? (?:at index (?P<index>\d+) )?appears to not have been used in the"
        r" graph|One of the differentiated Tensors (?:appears|does not require grad)"
        r"|differentiated (?:Tensors?|input) .{0,40}unreachable",
        "The output does not depend on [[tensor {index}||a tensor]] of those passed to "
        "autograd.grad",
        strong="unused-parameters",
        weak="detached-loss",
    ),
)
CUSTOM_GRADIENT: Table = (
    Message(
        r"function (?P<name>\w+?)(?:Backward)? returned an incorrect number of gradients "
        r"\(expected (?P<wanted>\d+), got (?P<got>\d+)\)",
        "The backward of {name} returns {got} gradients, but its forward takes {wanted} arguments",
        shows="incorrect-custom-backward",
    ),
    Message(
        r"Function (?P<name>\w+?)(?:Backward\d*)? returned an invalid gradient at index "
        r"(?P<index>\d+) - (?P<why>.*[^.\n])",
        "The backward of {name} returns an invalid gradient for argument {index}: {why}",
        shows="incorrect-custom-backward",
    ),
)
LEAF_CHANGED_IN_PLACE: Table = (
    Message(
        r"(?i)a view of a leaf Variable that requires grad (?:is being|has been) used in an in-?pl",
        "A view of a parameter that requires grad is modified in place",
        shows="in-place-modification",
    ),
    Message(
        r"(?i)a leaf Variable that requires grad (?:is being|has been) used in an in-?place",
        "A parameter (leaf) that requires grad is modified in place",
        shows="in-place-modification",
    ),
)
LOSS_WITHOUT_GRAPH: Table = (
    Message(
        r"cannot register a hook on a tensor that (?:doesn't|does not) require gradient",
        "A hook is registered on a tensor that has no graph, so no gradient will ever pass it",
        strong="detached-loss",
        weak="no-grad-training frozen-parameters",
    ),
    Message(
        r"element (\d+) of (?:tensors|variables|variables tuple) does not require grad"
        r"|does not require grad and does not have a grad_fn"
        r"|Inference tensors cannot be saved for backward|called backward on a tensor "
        r".{0,40}no_grad",
        "The loss has no graph (no grad_fn), so no parameter can get a gradient[[: {culprit}]]",
        strong="detached-loss",
        moderate="no-grad-training frozen-parameters non-differentiable-operation",
    ),
)
# a warning of torch's checkpointing, whose older form needs an input with a graph
CHECKPOINTED_WITHOUT_INPUT: Table = (Message(r"None of the inputs have requires_grad=True"),)
MISSING_DERIVATIVE: Table = (
    Message(
        r"derivative for '?(?P<name>[\w:.]+)'? is not implemented",
        "The operation {name} has no derivative, and backward needs it",
        shows="non-differentiable-operation",
    ),
    Message(
        r"differentiate twice a function that was marked with @once_differentiable"
        r"|(\w+)(?:Backward\w*)?: (?:does not support|is not) double (?:backward|differentiable)"
        r"|double (?:backward|differentiation).{0,60}not (?:supported|implemented)"
        r"|torch\.compile with aot_autograd does not currently support double backward",
        "An operation does not support double backward (a gradient of a gradient)",
        shows="api-misuse",
    ),
    Message(
        r"Only Tensors of floating point (?:and complex )?dtype can require grad",
        "An integer tensor cannot require a gradient",
        shows="api-misuse",
    ),
)
SECOND_BACKWARD: Table = (
    Message(
        r"Trying to backward through the graph (?:a )?second time"
        r"|saved (?:tensors|intermediate (?:values|results)).{0,60}(?:already )?been freed",
        "The graph is already freed when backward() runs a second time[[: {culprit}]]",
        strong="graph-freed",
        weak="graph-retained-across-steps",
    ),
)
OVERWRITTEN_TENSOR: Table = (
    Message(
        r"modified by an inplace operation: \[[\w.]+ \[(?P<shape>[\d, ]*)\]\](?:, which is output "
        r"\d+ of (?P<operation>\w+?)(?:Backward)?\d*,?)? is at version (?P<now>\d+); expected "
        r"version (?P<then>\d+)",
        "The [{shape}] tensor[[ made by {operation}|| (a parameter or other leaf)]] was modified "
        "in place {times} before backward could use it (version {now}, expected {then})",
        shows="in-place-modification",
    ),
    Message(
        r"modified by an inplace operation",
        "A tensor was modified in place between the forward and the backward pass",
        shows="in-place-modification",
    ),
)
