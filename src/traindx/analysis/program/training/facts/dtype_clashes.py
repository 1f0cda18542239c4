"""Operations that refuse the element types of what they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Items, Value
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.shapes.values import Shape
from traindx.analysis.program.training.facts.certainty import is_certain, makes
from traindx.analysis.program.training.facts.dtypes import WITH_WEIGHTS, is_autocast
from traindx.analysis.program.training.facts.elements import Element
from traindx.analysis.program.training.layers import layer_kind
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

INDICES = ("int64", "int32")
CLASSES = ("int64", "uint8")
LOOKUPS = frozenset({"Embedding", "EmbeddingBag"})
FRACTIONAL = frozenset({"mean", "std", "var", "softmax", "log_softmax", "norm"})
BINARY_LOSSES = frozenset({"binary_cross_entropy", "binary_cross_entropy_with_logits"})
PRODUCTS = frozenset({"matmul", "mv", "linear", "dot", "baddbmm", "inner"})
# where the index stands among the operands, after a tensor and the number of a dimension
INDEXED = {
    "gather": 2, "scatter": 2, "scatter_add": 2, "scatter_reduce": 2, "index_select": 2,
    "index_add": 2, "index_copy": 2, "index_fill": 2, "take": 1, "take_along_dim": 1,
    "bincount": 0, "embedding": 0, "repeat_interleave": 1,
}  # fmt: skip
INDEX_NAMES = ("index", "indices", "repeats")
WRITTEN = frozenset({"scatter", "scatter_add", "index_add", "index_copy", "lerp"})
BITWISE = frozenset({"and", "or", "xor", "bitwise_and", "bitwise_or", "operator.invert"})


@dataclass(frozen=True, slots=True, eq=False)
class DtypeClash:
    """An operand whose element type an operation refuses."""

    event: ProgramEvent
    operand: Value
    text: str
    cast: str  # the method that would make it fit


def dtype_clashes(story: Story) -> Iterator[DtypeClash]:
    """Yield the operations that will refuse an operand, on paths that surely run."""
    for event in story.events:
        if event.act is not EventForm.CALL or event.result is None:
            continue
        found = _of_event(story, event)
        if found is not None and is_certain(event):
            yield found


@dataclass(frozen=True, slots=True, eq=False)
class BlamedDtype:
    """A clash, with the dtype that was given and where that comes from, if that is elsewhere."""

    clash: DtypeClash
    dtype: str
    origin: Value | None


def blamed_dtypes(program: Program) -> Iterator[BlamedDtype]:
    """Yield the clashes of a program, each origin and each operation once."""
    seen: set[object] = set()
    for story in program.stories:
        for clash in dtype_clashes(story):
            origin, event = story.dtypes.origin(clash.operand), clash.event
            place = origin.site.node if origin.site is not None else event.node
            if seen & {place, event.node}:
                continue
            seen |= {place, event.node}
            found = story.dtypes.of(clash.operand)
            dtype = "" if found is None else found.dtype
            if not is_test_file(event.module):
                yield BlamedDtype(clash, dtype, origin if place is not event.node else None)


def _of_event(story: Story, event: ProgramEvent) -> DtypeClash | None:
    kind = layer_kind(event.receiver) if event.name == "()" else ""
    if kind in WITH_WEIGHTS and event.args:
        return _of_layer(story, event, kind)
    operation = operation_of(event.result)
    if operation is None or not operation.operands:
        return None
    rule = _RULES.get(operation.name)
    if rule is None or not makes(event):
        return None
    return rule(story, event, operation)


def _tensor(story: Story, value: Value | None) -> Element | None:
    """Return the element type of a value that is surely a tensor."""
    found = story.dtypes.of(value)
    return found if found is not None and found.holder == "tensor" else None


def _of_layer(story: Story, event: ProgramEvent, kind: str) -> DtypeClash | None:
    given = _tensor(story, event.args[0])
    if given is None:
        return None
    if kind in LOOKUPS:
        if given.dtype in INDICES:
            return None
        text = f"{kind} looks up whole numbers and receives {given.dtype}"
        return DtypeClash(event, event.args[0], text, "long()")
    weights = story.dtypes.weights.of(event.receiver, event)
    if weights is None or weights == given.dtype or is_autocast(event):
        return None
    text = f"{kind} has {weights} weights and receives {given.dtype}"
    return DtypeClash(event, event.args[0], text, _cast(weights))


def _cast(dtype: str) -> str:
    names = {"float32": "float()", "float64": "double()", "float16": "half()", "int64": "long()"}
    return names.get(dtype, f"to(torch.{dtype})")


def _of_product(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    found = [_tensor(story, v) for v in operation.operands[:2]]
    first, second = (*found, None, None)[:2]
    if first is None or second is None or first.dtype == second.dtype or is_autocast(event):
        return None
    at = 0 if first.dtype != "float32" else 1
    odd, other = (first, second) if at == 0 else (second, first)
    text = f"A matrix product of {first.dtype} and {second.dtype}"
    return DtypeClash(event, operation.operands[at], text, _cast(other.dtype)) if odd else None


def _of_classes(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    """Class indices are int64; a target of the output's shape holds shares instead."""
    target, output = operation.argument("target"), operation.argument("input")
    found = _tensor(story, target)
    if found is None or target is None or found.dtype in CLASSES:
        return None
    if found.is_float and not _is_index(story, output, target):
        return None
    text = f"{operation.name} takes class indices as int64 and receives {found.dtype}"
    return DtypeClash(event, target, text, "long()")


def _is_index(story: Story, output: Value | None, target: Value) -> bool:
    """Tell whether a target has one dimension less than the output."""
    shapes: list[Shape | None] = [story.shapes.shape(output), story.shapes.shape(target)]
    first, second = shapes
    if second is not None and second.rank == 1 and (first is None or first.rank != 1):
        return first is not None
    if first is None or second is None or first.rank is None or second.rank is None:
        return False
    return second.rank == first.rank - 1


def _of_binary(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    target, output = operation.argument("target"), operation.argument("input")
    found, given = _tensor(story, target), _tensor(story, output)
    if found is None or target is None:
        return None
    is_strict = operation.name == "binary_cross_entropy" and given is not None
    is_other = is_strict and given is not None and given.dtype != found.dtype
    if found.is_float and not is_other:
        return None
    text = f"{operation.name} takes targets of floating-point numbers and receives {found.dtype}"
    if found.is_float and given is not None:
        text = f"{operation.name} compares {given.dtype} with a target of {found.dtype}"
    return DtypeClash(event, target, text, "float()")


def _of_fraction(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    given = _tensor(story, operation.operands[0])
    if given is None or given.is_float or "dtype" in operation.settings:
        return None
    text = f"{operation.name} needs floating-point numbers and receives {given.dtype}"
    return DtypeClash(event, operation.operands[0], text, "float()")


def _of_index(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    if len(operation.operands) < 2 or _tensor(story, operation.operands[0]) is None:
        return None
    key = operation.operands[1]
    for one in key.members if isinstance(key, Items) else [key]:
        found = _tensor(story, one)
        if found is not None and found.is_float and found.is_single is not True:
            text = f"An index must be whole numbers or a mask and is {found.dtype}"
            return DtypeClash(event, one, text, "long()")
    return None


def _of_pick(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    """`gather`, `scatter` and their like take whole numbers, and write their own element type."""
    at, named = INDEXED[operation.name], operation.settings
    given = [*(named[n] for n in INDEX_NAMES if n in named), *operation.operands[at : at + 1]]
    index = given[0] if given else None
    found = _tensor(story, index)
    if found is not None and index is not None and found.is_float:
        text = f"{operation.name} takes whole numbers as its index and receives {found.dtype}"
        return DtypeClash(event, index, text, "long()")
    return _of_written(story, event, operation) if operation.name in WRITTEN else None


def _of_written(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    at = 1 if operation.name == "lerp" else 3
    source = operation.settings.get("src", operation.settings.get("source"))
    if source is None and at < len(operation.operands):
        source = operation.operands[at]
    found, into = _tensor(story, source), _tensor(story, operation.operands[0])
    if source is None or found is None or into is None or found.dtype == into.dtype:
        return None
    text = f"{operation.name} writes {found.dtype} into a tensor of {into.dtype}"
    return None if is_autocast(event) else DtypeClash(event, source, text, _cast(into.dtype))


def _of_bits(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    """`&`, `|` and `~` work on booleans and whole numbers."""
    for operand in operation.operands[:2]:
        found = _tensor(story, operand)
        if found is not None and found.is_float:
            name = operation.name.removeprefix("operator.")
            text = f"A bitwise {name} takes booleans or whole numbers and receives {found.dtype}"
            return DtypeClash(event, operand, text, "bool()")
    return None


def _of_mask(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    at = 0 if operation.name == "where" else 1
    if len(operation.operands) != 3:
        return None
    found = _tensor(story, operation.operands[at])
    if found is None or found.dtype in ("bool", "uint8"):
        return None
    text = f"{operation.name} takes a mask of booleans and receives {found.dtype}"
    return DtypeClash(event, operation.operands[at], text, "bool()")


def _of_one_hot(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    found = _tensor(story, operation.operands[0])
    if found is None or found.dtype == "int64":
        return None
    text = f"one_hot takes int64 and receives {found.dtype}"
    return DtypeClash(event, operation.operands[0], text, "long()")


def _of_parameter(story: Story, event: ProgramEvent, operation: Operation) -> DtypeClash | None:
    found = _tensor(story, operation.operands[0])
    frozen = operation.settings.get("requires_grad")
    if found is None or found.is_float or frozen is not None or len(operation.operands) > 1:
        return None
    text = f"Only floating-point tensors can require gradients, and this one is {found.dtype}"
    return DtypeClash(event, operation.operands[0], text, "float()")


Rule = Callable[["Story", ProgramEvent, Operation], DtypeClash | None]
_RULES: dict[str, Rule] = {
    **dict.fromkeys(PRODUCTS, _of_product),
    **dict.fromkeys(BINARY_LOSSES, _of_binary),
    **dict.fromkeys(FRACTIONAL, _of_fraction),
    **dict.fromkeys(INDEXED, _of_pick),
    **dict.fromkeys(BITWISE, _of_bits),
    "lerp": _of_written,
    "cross_entropy": _of_classes,
    "nll_loss": _of_classes,
    "getitem": _of_index,
    "masked_fill": _of_mask,
    "where": _of_mask,
    "one_hot": _of_one_hot,
    "torch.nn.Parameter": _of_parameter,
}
