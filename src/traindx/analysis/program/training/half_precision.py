"""Which tensors are float16, by autocast or by weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Answer, Known, Part, Result, Value, constant
from traindx.analysis.program.training.facts.certainty import makers
from traindx.analysis.program.training.layers import layer_kind
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.precision import autocast_type, type_named

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# what autocast computes in float16
PRODUCTS = frozenset(
    {"matmul", "linear", "bilinear", "conv1d", "conv2d", "conv3d", "einsum", "baddbmm", "addmm"}
)
WEIGHTED = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d", "Bilinear"})
# what leaves the type of its tensors
KEEPS = frozenset(
    {"view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "flatten", "contiguous",
     "chunk", "split", "unbind", "getitem", "mul", "div", "add", "sub", "relu", "tanh", "dropout",
     "masked_fill", "clone", "detach", "t", "neg", "expand", "repeat", "cat", "stack", "cuda"}
)  # fmt: skip
NUMBERS = ("math.", "builtins.")
MIXED = {"precision": ("16-mixed", 16, "16"), "mixed_precision": ("fp16",), "fp16": (True,)}


def is_half(story: Story, value: Value, depth: int = 25) -> Answer:
    """Tell whether a tensor is float16 where it is computed."""
    while isinstance(value, Part) and isinstance(value.key, int):
        value = value.of
    known = story.dtypes.of(value)
    operation = operation_of(value)
    if known is not None and known.dtype in ("float16", "bfloat16", "float64"):
        return Answer.of(known.dtype == "float16")
    if operation is None or not isinstance(value, Result) or depth == 0:
        return Answer.UNKNOWN
    is_product = operation.name in PRODUCTS or layer_kind(value.receiver) in WEIGHTED
    if is_product:
        return _of_product(story, value)
    if operation.name == "to" and not any(map(type_named, (*value.args, *value.kwargs.values()))):
        return is_half(story, operation.operands[0], depth - 1)
    if operation.name not in KEEPS:
        return Answer.UNKNOWN
    pair = operation.operands[: 2 if operation.name in ("mul", "div", "add", "sub") else 1]
    found = {is_half(story, v, depth - 1) for v in pair if not _is_number(v)}
    return found.pop() if len(found) == 1 else Answer.UNKNOWN


def _is_number(value: Value) -> bool:
    if isinstance(value, Known):
        return True
    if isinstance(value, Part):
        return isinstance(value.of, Part) and value.of.key == "shape"
    if not isinstance(value, Result):
        return False
    if value.maker == ".size" or value.maker.startswith(NUMBERS):
        return True
    is_arithmetic = value.maker.startswith("operator.") and value.maker != "operator.getitem"
    return is_arithmetic and all(map(_is_number, value.inputs))


def _of_product(story: Story, product: Result) -> Answer:
    """Tell whether a product of tensors is computed in float16: what is around it decides."""
    event = makers(story).get(product)
    for context in reversed(event.contexts) if event is not None else ():
        if isinstance(context, Result) and "autocast" in context.maker:
            return Answer.of(_is_half_context(context))
    if event is not None and story.recall(_runs_in_half) and event.within:
        return Answer.YES
    return Answer.UNKNOWN


def _is_half_context(context: Result) -> bool:
    if "enabled" in context.kwargs and constant(context.kwargs["enabled"]) is not True:
        return False
    # a type that is written down holds for whatever device the program chooses
    named = context.kwargs.get("dtype", context.args[1] if len(context.args) > 1 else None)
    return autocast_type(context) == "float16" or type_named(named) == "float16"


def _runs_in_half(story: Story) -> bool:
    """Tell whether a trainer is told to compute in float16."""
    for event in story.events:
        is_made = event.name.rsplit(".", 1)[-1].endswith(
            ("Trainer", "Arguments", "Accelerator", "Fabric", "Config")
        )
        for name, meant in MIXED.items() if is_made and not event.is_own else ():
            if constant(event.kwargs.get(name)) in meant:
                return True
    return False
