"""What is said of numbers: dtypes that clash, half precision and its scaler, NaN."""

from __future__ import annotations

from traindx.analysis.errors.messages import KnownError, Message, Table

DOUBLE = {"double", "float64"}
HALF = {"half", "bfloat16", "c10::half", "c10::bfloat16"}
INTEGERS = {"long", "int", "byte", "unsigned char", "bool", "short", "char", "long long"}

CONSTANT_BEYOND_HALF: Table = (
    Message(
        r"value cannot be converted to type (?:(?:at|c10)::Half|(?:torch\.)?(?:float16|Half)) "
        r"without overflow",
        "A constant is too large for float16 (maximum 65504)",
        shows="fp16-overflow",
    ),
)
SCALER: Table = (
    Message(
        r"Attempting to unscale FP16 gradients",
        "The weights are fp16, so the gradients are too; GradScaler needs float32 weights",
        shows="half-precision-weights",
    ),
    # neither `scaler.step` nor `unscale_` was called
    Message(
        r"No inf checks were recorded prior to update",
        "The GradScaler is updated without scaler.step(optimizer); optimizer.step() bypasses it",
        strong="scaler-bypassed",
        weak="api-misuse",
    ),
    Message(
        r"No inf checks were recorded for this optimizer",
        "The GradScaler found no gradient: no backward() on the scaled loss, a detached loss, or "
        "an optimizer over other parameters than the model's",
        moderate="detached-loss parameters-not-in-optimizer missing-backward",
        weak="frozen-parameters api-misuse",
        kind="no gradient",
    ),
    # two `unscale_` without a step between them: one too many, as of each micro-batch
    Message(
        r"unscale_\(\) has already been called on this optimizer since the last update",
        "The GradScaler unscales the gradients twice in one step",
        strong="api-misuse",
        weak="missing-scaler-update",
    ),
    # the update between the two is missing, or the two are in the wrong order
    Message(
        r"unscale_\(\) is being called after step",
        "The GradScaler unscales after a step, without scaler.update() in between",
        strong="missing-scaler-update",
        moderate="api-misuse",
    ),
    Message(
        r"step\(\) has already been called since the last update",
        "The GradScaler steps twice without scaler.update() in between",
        strong="missing-scaler-update",
        weak="api-misuse",
    ),
    Message(
        r"Attempted .{0,20}_scale is None",
        "The GradScaler is used before it has scaled a loss",
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
        "The model's output is NaN or Inf, so nothing can be sampled from its probabilities",
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

_MEET = "Tensors have different dtypes, {got} and {wanted}: {hint}"
_LABELS = "class labels must be int64 (Long)"
DTYPES: Table = (
    Message(
        r"Expected floating point type for target with class probabilities, got (?P<got>\w+)",
        "Targets with the shape of the outputs are read as probabilities, but are {got}; pass "
        "class indices of shape (N), or float targets",
        shows="dtype-mismatch",
    ),
    Message(
        r"\w+ and \w+ (?:must|to) have the same dtype,? but got:? (?P<got>[\w.]+(?: int)?) "
        r"(?:and|!=) (?P<wanted>[\w.]+(?: int)?)",
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
        "Kernel {kernel} is not implemented for {got} tensors: " + _LABELS,
        shows="dtype-mismatch",
    ),
    Message(
        r"\"(?P<kernel>\w+)\" not implemented for '(?P<got>\w+)'",
        "Kernel {kernel} is not implemented for {got} tensors: {hint}",
        shows="dtype-mismatch",
    ),
    Message(
        r"result type (?P<got>\w+) can't be cast to the desired output type (?P<wanted>Long)\b",
        "A {got} result cannot be written to a {wanted} tensor: integer targets where float "
        "targets are needed",
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
        "Argument {name} is {got}, expected {wanted}",
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
        "An index tensor is not of dtype {wanted}",
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
        "FSDP needs parameters of one dtype, but got {wanted} and {got}; cast the model before "
        "wrapping it",
        shows="dtype-mismatch",
    ),
)


def dtype_words(known: KnownError) -> dict[str, str]:
    """Return the two dtypes of a message, and what their clash usually comes from."""
    got, wanted = _dtype(known["got"]), _dtype(known["wanted"])
    return {"got": got, "wanted": wanted, "hint": _dtype_hint(wanted, got)}


def names_float64(known: KnownError) -> bool:
    """Tell whether one of the two dtypes is float64."""
    return bool(DOUBLE & {_dtype(known[name]).lower() for name in ("got", "wanted")})


def _dtype(name: str) -> str:
    """The dtype in the name of a tensor's class, such as torch.cuda.FloatTensor."""
    if name.startswith("torch.") and name.endswith("Tensor"):
        return name.rsplit(".", 1)[-1].removesuffix("Tensor")
    return name


def _dtype_hint(wanted: str, got: str) -> str:
    both = {wanted.lower(), got.lower()}
    if wanted in ("Long", "Long or Byte"):
        return _LABELS
    if DOUBLE & both:
        return "float64 is numpy's default, the weights are float32"
    if HALF & both:
        return "half precision and float32 are mixed outside of autocast"
    if got.lower() in INTEGERS:
        return "integers are passed where floats are needed"
    return "convert one of the two where it is created"


def is_of_dtypes(known: KnownError) -> bool:
    """Tell dtypes from devices, of which a layer speaks in the same words."""
    return known.kind != "layer" or ("cuda" in known["got"]) == ("cuda" in known["wanted"])
