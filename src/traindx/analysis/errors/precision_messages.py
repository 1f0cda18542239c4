"""What is said of numbers: dtypes that clash, half precision and its scaler, NaN."""

from __future__ import annotations

from traindx.analysis.errors.messages import Message, Table

CONSTANT_BEYOND_HALF: Table = (
    Message(
        r"value cannot be converted to type (?:(?:at|c10)::Half|(?:torch\.)?(?:float16|Half)) "
        r"without overflow",
        "A constant is too large for float16, which ends at 65504",
        shows="fp16-overflow",
    ),
)
SCALER: Table = (
    Message(
        r"Attempting to unscale FP16 gradients",
        "The gradients are fp16, because the weights are: the scaler needs float32 weights",
        shows="half-precision-weights",
    ),
    # neither `scaler.step` nor `unscale_` was called
    Message(
        r"No inf checks were recorded prior to update",
        "The scaler is updated and has stepped no optimizer: the optimizer is stepped past it",
        strong="scaler-bypassed",
        weak="api-misuse",
    ),
    Message(
        r"No inf checks were recorded for this optimizer",
        "The scaler steps an optimizer none of whose parameters got a gradient: no backward on the "
        "scaled loss, a loss cut off from them, or other parameters than the model's",
        moderate="detached-loss parameters-not-in-optimizer missing-backward",
        weak="frozen-parameters api-misuse",
        kind="no gradient",
    ),
    # two `unscale_` without a step between them: one too many, as of each micro-batch
    Message(
        r"unscale_\(\) has already been called on this optimizer since the last update",
        "The gradients are unscaled twice in one step",
        strong="api-misuse",
        weak="missing-scaler-update",
    ),
    # the update between the two is missing, or the two are in the wrong order
    Message(
        r"unscale_\(\) is being called after step",
        "The gradients are unscaled after a step, with no update in between",
        strong="missing-scaler-update",
        moderate="api-misuse",
    ),
    Message(
        r"step\(\) has already been called since the last update",
        "The scaler steps twice without an update in between",
        strong="missing-scaler-update",
        weak="api-misuse",
    ),
    Message(
        r"Attempted .{0,20}_scale is None",
        "The scaler is used before it has scaled a loss",
        strong="api-misuse",
    ),
)
DISTRIBUTION: Table = (
    # any number fits the constraint Real, so that only NaN breaks it
    Message(
        r"(?s)Expected parameter (?P<name>\w+) .{0,400}?to satisfy the constraint "
        r"(?:IndependentConstraint\()?Real(?:Vector)?\(\).{0,40}?but found invalid values:?"
        r"(?P<values>.*)",
        kind="values",
    ),
    Message(
        r"probability tensor contains either `?inf`?, `?nan`? or element < 0",
        "Probabilities that are no numbers are drawn from: the model gives NaN or Inf",
        moderate="unstable-operation lr-too-high nan-in-data",
        weak="fp16-overflow",
    ),
)
NAN_PARAMETERS: Table = (
    Message(
        r"(?s)satisfy the constraint .*but found invalid values"
        r"|probability tensor contains either `?inf`?, `?nan`?"
    ),
)
PRINTED_NUMBER: Table = (Message(r"(?<![\w.])-?\d+\.\d*(?:e[+-]?\d+)?"),)

_MEET = "Two types meet, {got} and {wanted}: {hint}"
_LABELS = "class labels have to be int64 (Long)"
DTYPES: Table = (
    Message(
        r"Expected floating point type for target with class probabilities, got (?P<got>\w+)",
        "Targets of the shape of the outputs are taken for probabilities, and are {got}: give "
        "class indices of shape (N), or float targets",
        shows="dtype-mismatch",
    ),
    Message(
        r"\w+ and \w+ (?:must|to) have the same dtype,? but got:? (?P<got>[\w.]+) and "
        r"(?P<wanted>[\w.]+)",
        _MEET,
        shows="dtype-mismatch",
    ),
    Message(
        r"Found dtype (?P<got>\w+) but expected (?P<wanted>\w+)", _MEET, shows="dtype-mismatch"
    ),
    Message(
        r"Input type \((?P<got>[\w. :]+)\) and (?:weight|bias) type \((?P<wanted>[\w. :]+)\) "
        r"should be",
        _MEET,
        shows="dtype-mismatch",
        kind="layer",
    ),
    Message(
        r"\"(?P<kernel>\w*nll_loss\w*)\" not implemented for '(?P<got>\w+)'",
        "Kernel {kernel} does not work on {got} tensors: " + _LABELS,
        shows="dtype-mismatch",
    ),
    Message(
        r"\"(?P<kernel>\w+)\" not implemented for '(?P<got>\w+)'",
        "Kernel {kernel} does not work on {got} tensors: {hint}",
        shows="dtype-mismatch",
    ),
    Message(
        r"result type (?P<got>\w+) can't be cast to the desired output type (?P<wanted>Long)\b",
        "A {got} result cannot be written to a {wanted} tensor: float targets are needed where "
        "these are integers",
        shows="dtype-mismatch",
    ),
    Message(
        r"result type (?P<got>\w+) can't be cast to the desired output type (?P<wanted>\w+)",
        "A {got} result cannot be written to a {wanted} tensor",
        shows="dtype-mismatch",
    ),
    Message(
        r"[Ee]xpected tensor for argument #\d+ '(?P<name>\w+)' to have (?:one of the following )?"
        r"scalar types?:? (?P<wanted>[\w, ]+?);? but got (?:\w+\.)*(?P<got>\w+?)(?:Tensor|Type)? "
        r"instead",
        "Argument {name} is {got}, {wanted} is wanted",
        shows="dtype-mismatch",
    ),
    Message(
        r"(?:expected scalar type|expected target dtype to be) (?P<wanted>[\w ]+?),? but "
        r"(?:found|got) (?P<got>\w+)"
        r"|Expected object of (?:scalar )?type (?P<wanted2>[\w.]+) but (?:got|found) (?:scalar )?"
        r"type (?P<got2>[\w.]+)",
        _MEET,
        shows="dtype-mismatch",
    ),
    Message(
        r"tensors used as indices must be (?P<wanted>[\w, ]+) tensors"
        r"|Expected dtype (?P<wanted2>int64) for index",
        "A tensor is used as an index that is not of type {wanted}",
        shows="dtype-mismatch",
    ),
    Message(
        r"input dtype \((?:torch\.)?(?P<got>\w+)\) does not match weight dtype \((?:torch\.)?"
        r"(?P<wanted>\w+)\)|input must have the type (?:torch\.)?(?P<wanted2>\w+), got type "
        r"(?:torch\.)?(?P<got2>\w+)",
        _MEET,
        shows="dtype-mismatch",
    ),
    Message(
        r"Must flatten tensors with (?:uniform|the same) `?dtype`? but got (?P<wanted>[\w.]+) and "
        r"(?P<got>[\w.]+)",
        "Parameters of {wanted} and {got} meet: a sharded module holds parameters of one type: "
        "cast the model before it is wrapped",
        shows="dtype-mismatch",
    ),
)
