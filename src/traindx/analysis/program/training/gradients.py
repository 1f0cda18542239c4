"""Where gradients go: what a loss reaches, and what cuts it off."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Instance,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.contents import SAME_NUMBERS
from traindx.analysis.program.training.kinds import Kind, kind_by_name, made_kind
from traindx.analysis.program.training.operations import operation_name, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# what gives numbers without a slope
FLAT = frozenset(
    {"argmax", "argmin", "argsort", "round", "floor", "ceil", "sign", "sgn", "eq", "ne", "lt", "le",
     "gt", "ge", "long", "int", "bool", "one_hot", "bucketize", "searchsorted", "trunc", "short",
     "heaviside", "nonzero", "isnan", "isinf", "logical_and", "logical_or", "logical_not",
     "floordiv", "count_nonzero", "multinomial", "bernoulli"}
)  # fmt: skip
PLACED = frozenset({"topk", "sort", "max", "min", "median", "kthvalue", "mode"})
# what gives the same numbers without a history, or no tensor at all
DETACHES = frozenset({"detach", "item", "numpy", "tolist"})
# what takes nothing of its operands but their shape
SHAPES = frozenset(
    {"randn_like", "rand_like", "zeros_like", "ones_like", "full_like", "empty_like", "size", "dim",
     "numel", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "stride",
     "builtins.len"}
)  # fmt: skip
NEW = frozenset(
    {"torch.tensor", "torch.Tensor", "torch.FloatTensor", "torch.as_tensor", "torch.from_numpy",
     "torch.LongTensor", "torch.zeros", "torch.ones", "torch.rand", "torch.randn", "torch.arange",
     "torch.full", "torch.autograd.Variable", "builtins.float", "builtins.int",
     "torch.eye", "torch.empty", "torch.linspace", "torch.randint", "torch.randperm"}
)  # fmt: skip
# of a batch or an axis: what takes its shape, device or type from another
LIKE = frozenset({"view_as", "expand_as", "reshape_as", "type_as", "to"})
# layers that have no weights
WEIGHTLESS = (
    "ReLU", "Sigmoid", "Tanh", "Softmax", "Softplus", "GELU", "SiLU", "ELU", "Hard", "Identity",
    "Flatten", "Dropout", "Pool", "Pad", "Fold", "Upsample", "Pixel", "Threshold", "Shrink", "Loss",
    "Mish", "Softsign", "Softmin", "CosineSimilarity", "PairwiseDistance", "GLU", "Channel",
)  # fmt: skip


class Cut(Enum):
    """How a value lost its history."""

    DETACHED = "detached"
    FLAT = "no slope"
    UNRECORDED = "made where autograd records nothing"
    SHAPE = "only a shape is taken"


def cut_of(value: Value) -> Cut | None:
    """Return how a value was made without a history of what it was made from; None if it was."""
    if isinstance(value, Part) and value.key in ("data", "grad"):
        return Cut.DETACHED
    if isinstance(value, Part) and value.key in ("shape", "device", "dtype", "ndim"):
        return Cut.SHAPE
    if isinstance(value, Part) and value.key in ("indices", 1) and _gives_places(value.of):
        return Cut.FLAT
    if not isinstance(value, Result):
        return None
    if operation_name(value.maker) in SHAPES or value.maker in SHAPES:
        return Cut.SHAPE
    if operation_name(value.maker) in FLAT:
        return Cut.FLAT
    if value.gradients is Answer.NO:
        return Cut.UNRECORDED
    if value.maker == ".sample" and _is_distribution(value.receiver):
        return Cut.DETACHED
    is_plain = value.maker.startswith(("numpy.", "sklearn.", "math.", "scipy.", "pandas."))
    if value.maker in NEW or is_plain or operation_name(value.maker) in DETACHES:
        return Cut.DETACHED
    return None


def _gives_places(value: Value) -> bool:
    """Tell whether something gives values and where they stand: `x.topk(k)`, `x.max(1)`."""
    operation = operation_of(value)
    if operation is None or operation.name not in PLACED or not isinstance(value, Result):
        return False
    is_along = len(operation.operands) > 1 or bool({"dim", "k"} & value.kwargs.keys())
    return is_along or operation.name in ("topk", "sort")


def _is_distribution(value: Value | None) -> bool:
    return isinstance(value, Result) and value.maker.startswith("torch.distributions.")


def is_cut(value: Value) -> bool:
    """Tell whether a value was made without a history of the values that it was made from."""
    return cut_of(value) is not None


def history(value: Value, most: int = 4000) -> Iterator[Value]:
    """Yield what gradients of a value flow into, layers included, nearest first."""
    pending, seen = deque([value]), {id(value)}
    while pending and most:
        most -= 1
        found = pending.popleft()
        yield found
        if is_cut(found):
            continue
        is_run = isinstance(found, Result) and found.maker == "()"
        is_sized = _is_layer(found)  # by attributes of others, into which nothing flows
        for below in found.inputs if is_run else carriers(found):
            if id(below) not in seen and not (is_sized and isinstance(below, Part)):
                seen.add(id(below))
                pending.append(below)


def _is_layer(value: Value) -> bool:
    if not isinstance(value, Result) or value.receiver is not None:
        return False
    return value.maker.startswith("torch.nn.") and "functional" not in value.maker


def carriers(value: Value) -> tuple[Value, ...]:
    """Return the operands of a value that its gradient flows into, as far as it is not cut."""
    if isinstance(value, Result) and value.receiver is not None:
        if operation_name(value.maker) in LIKE and value.maker != "()":
            return (value.receiver,)
        if value.maker == "()":
            return (*value.args, *value.kwargs.values())
    if isinstance(value, Result) and value.maker == "operator.getitem":
        return value.args[:1]
    left = _after_cancelling(value)
    return value.inputs if left is None else (left,)


def _after_cancelling(value: Value) -> Value | None:
    """Return `b` of `a + (b - a)`: what flows into `a` is taken back by its second use."""
    outer = operation_of(value)
    if outer is None or outer.name != "add" or len(outer.operands) != 2:
        return None
    for plain, other in (outer.operands, outer.operands[::-1]):
        inner = operation_of(other)
        is_difference = inner is not None and inner.name == "sub" and len(inner.operands) == 2
        if inner is not None and is_difference and inner.operands[1] is plain:
            return inner.operands[0]
    return None


def has_history(
    value: Value, depth: int = 6, known_of: dict[tuple[int, int], Answer] | None = None
) -> Answer:
    """Tell whether gradients of a value flow into something that can be trained.

    Choices share what they are of: `known_of` has what was found on the way, by value and depth.
    """
    known_of = {} if known_of is None else known_of
    if (id(value), depth) not in known_of:
        known_of[id(value), depth] = _history_found(value, depth, known_of)
    return known_of[id(value), depth]


def _history_found(value: Value, depth: int, known_of: dict[tuple[int, int], Answer]) -> Answer:
    unknown = False
    pending, seen, most = deque([value]), {id(value)}, 4000
    while pending and most:
        most -= 1
        found = pending.popleft()
        known = _trains(found)
        if isinstance(found, Choice):
            below = found.options if depth else ()
            options = {has_history(option, depth - 1, known_of) for option in below}
            known = options.pop() if len(options) == 1 else Answer.UNKNOWN
        if known is Answer.YES:
            return Answer.YES
        unknown = unknown or known is Answer.UNKNOWN
        if known is not None or is_cut(found):
            continue
        for carrier in carriers(found):
            if id(carrier) not in seen:
                seen.add(id(carrier))
                pending.append(carrier)
    return Answer.UNKNOWN if unknown or not most else Answer.NO


def _trains(value: Value) -> Answer | None:
    """Tell whether a value is a weight or the output of a layer with weights.

    None where its operands decide.
    """
    if isinstance(value, Unknown):
        return Answer.UNKNOWN
    if isinstance(value, Instance):
        return Answer.UNKNOWN
    if isinstance(value, Part):
        return _part_trains(value)
    if not isinstance(value, Result):
        return None
    if value.maker in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        return Answer.YES
    if value.maker == "builtins.next":
        return Answer.NO if gives_data(value) else None
    if _is_made_trainable(value):
        return Answer.YES
    if is_cut(value):
        return None
    if value.maker == "()":
        return runs_weights(value)
    is_unseen = value.maker.startswith("recursion.") or is_foreign(value)
    return Answer.UNKNOWN if is_unseen else None


def _part_trains(value: Part) -> Answer | None:
    """A weight of a layer is trained; a part of a batch is data."""
    owner = value.of
    if isinstance(owner, (Instance, Unknown)) and not is_cut(value):
        return Answer.UNKNOWN
    is_layer = isinstance(owner, Result) and owner.maker.startswith("torch.nn.")
    return Answer.YES if is_layer and value.key in ("weight", "bias") else None


def gives_data(value: Result) -> bool:
    """Tell whether an element is of a loader, a range or the like."""
    over = value.args[0] if value.args else None
    if over is None:
        return False
    if isinstance(over, Result) and over.maker == "builtins.range":
        return True
    kind = made_kind(over) or kind_by_name(over)
    return kind.kind is Kind.LOADER


def _is_made_trainable(value: Result) -> bool:
    """`torch.randn(3, requires_grad=True)`, `x.requires_grad_()`: of no value that had a history.

    A new tensor of an old loss reaches nothing that the loss was made from.
    """
    is_asked = constant(value.kwargs.get("requires_grad")) is True
    is_asked = is_asked or constant(value.fields.get("requires_grad")) is True
    if value.maker == ".requires_grad_":
        is_asked = not value.args or constant(value.args[0]) is not False
    return is_asked and not any(_is_weighted(v) for v in origins(value, 400))


def _is_weighted(value: Value) -> bool:
    return isinstance(value, Result) and value.maker == "()" and (
        runs_weights(value) is not Answer.NO
    )  # fmt: skip


def runs_weights(value: Result) -> Answer | None:
    """Tell whether a call runs a layer with weights; None for a function of its arguments."""
    layer = value.receiver
    made = None if layer is None else made_kind(layer)
    nature = made or (None if layer is None else kind_by_name(layer))
    kind = Kind.UNKNOWN if nature is None else nature.kind
    if isinstance(layer, Result) and layer.maker.startswith("torch.nn."):
        last = layer.maker.rsplit(".", 1)[-1]
        return None if any(word in last for word in WEIGHTLESS) else Answer.YES
    if kind is Kind.LOSS:  # one that a function out of sight made may run a model of its own
        return Answer.UNKNOWN if made is None and isinstance(layer, Result) else None
    return Answer.YES if kind is Kind.MODEL else Answer.UNKNOWN


def is_foreign(value: Result) -> bool:
    """Tell whether something that is no library of numbers made a value."""
    root = value.maker.split(".", 1)[0]
    return root not in ("torch", "operator", "builtins", "numpy", "math", "einops", "")


def runs_behind(value: Value, *, certain: bool = True) -> list[Result]:
    """Return the calls of layers with weights that a value was made from, cut or not.

    Where it need not be certain, what is out of sight is taken for a layer too.
    """
    return list(_runs_behind(value, certain))


def has_run_behind(value: Value, *, certain: bool = True) -> bool:
    """Tell whether a value was made by calls of layers with weights, cut or not."""
    return next(_runs_behind(value, certain), None) is not None


def _runs_behind(value: Value, certain: bool) -> Iterator[Result]:
    return (v for v in origins(value) if isinstance(v, Result) and _is_run(v, certain))


def runs_reached(value: Value, *, certain: bool = True) -> list[Result]:
    """Return the calls of layers with weights that gradients of a value flow into."""
    return [
        v for v in history(value) if isinstance(v, Result) and _is_run(v, certain) and not is_cut(v)
    ]


def _is_run(value: Result, certain: bool) -> bool:
    known = runs_weights(value) if value.maker == "()" else None
    return known is Answer.YES or (known is Answer.UNKNOWN and not certain)


def cuts_before(value: Value, *, certain: bool = True) -> list[tuple[Cut, Value]]:
    """Return where the history of a value ends, nearest first, although weights are behind it."""
    found: list[tuple[Cut, Value]] = []
    for cut in history(value):
        how = cut_of(cut)
        if how is not None and how is not Cut.SHAPE and has_run_behind(cut, certain=certain):
            found.append((_first_cut(how, cut), cut))
    return found


def _first_cut(how: Cut, value: Value) -> Cut:
    """A new tensor of what was rounded before: it is the rounding that has no slope."""
    while how is Cut.DETACHED and value.inputs:
        value = value.inputs[0]
        below = cut_of(value)
        if below is Cut.FLAT:
            return Cut.FLAT
        operation = operation_of(value)
        is_moved = operation is not None and operation.name in SAME_NUMBERS
        if below is not Cut.DETACHED and not isinstance(value, Part) and not is_moved:
            break
    return how


def terms_of(value: Value, depth: int = 8) -> list[Value]:
    """Return the terms of a sum: of `a + 0.5 * b - c`, of the sum of a list."""
    operation = operation_of(value)
    if operation is None or depth == 0:
        return [value]
    if operation.name in ("add", "sub"):
        return [t for v in operation.operands for t in terms_of(v, depth - 1)]
    if operation.name in ("mul", "div"):
        scaled = [v for v in operation.operands if not isinstance(v, Known)]
        return terms_of(scaled[0], depth - 1) if len(scaled) == 1 else [value]
    if operation.name in ("neg", "requires_grad") and operation.operands:
        return terms_of(operation.operands[0], depth - 1)
    if operation.name in ("sum", "stack") and operation.operands:
        held = operation.operands[0]
        parts = held.inputs if not isinstance(held, Result) else ()
        return [t for v in parts for t in terms_of(v, depth - 1)] or [value]
    return [value]


# what is only done where gradients are wanted
WANTS = frozenset({".requires_grad_", ".retain_grad", ".register_hook", "requires_grad",
                   "torch.enable_grad", "torch.autograd.grad", "torch.func.grad", "torch.func.vjp",
                   "torch.func.jacrev", "torch.autograd.functional.jacobian"})  # fmt: skip


def wants_gradients(events: Iterable[ProgramEvent], *, is_shared: bool = False) -> bool:
    """Tell whether something among events is done for the sake of gradients: an attack, a map.

    Where training shares the code (`is_shared`), gradients are switched on for training.
    """
    for event in events:
        given = event.args[0] if event.args else None
        if event.name in WANTS and constant(given) is not False:
            return True
        if not is_shared and any(
            isinstance(c, Result) and c.maker == "torch.enable_grad" for c in event.contexts
        ):
            return True
    return False


def is_frozen(story: Story, model: Value) -> bool:
    """Tell whether gradients of parameters of a model are switched off somewhere."""
    for event in story.index.named(".requires_grad_", "requires_grad"):
        is_off = bool(event.args) and constant(event.args[0]) is False
        behind = origins(event.receiver, 50) if is_off and event.receiver is not None else ()
        if any(story.has_inside(model, value) for value in behind):
            return True
    return False


def ends_in_numbers(story: Story, value: Value, depth: int = 30) -> bool:
    """Tell whether all that is made of a tensor are numbers without a history, and it is used.

    Where only its shape is taken, its numbers are not.
    """
    uses = [use for use in story.made_from(value) if cut_of(use) is not Cut.SHAPE]
    if not uses or depth == 0 or story.is_handed_on(value):
        return False
    return all(
        is_cut(use) or (isinstance(use, (Result, Part)) and ends_in_numbers(story, use, depth - 1))
        for use in uses
    )
