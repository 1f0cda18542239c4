"""Operations that break at the edge of their domain: log of 0, a root of 0, an exp of much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.contents import Content, contents, same_numbers
from traindx.analysis.program.training.kinds import Kind, names_of
from traindx.analysis.program.training.layers import is_parameter
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import LOSSES, Operation, operation_of
from traindx.analysis.program.training.self_distances import (
    is_self_distance,
    is_square,
    is_sum_of_squares,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

PROBABLE = {Content.PROBABILITIES, Content.UNIT_INTERVAL}
GUARDS = frozenset({"clamp", "clamp_min", "clamp_max", "min", "minimum", "nan_to_num"})
SMALL = 0.01  # what is added below this keeps an argument off zero
Edge = tuple[str, str, bool]  # what it is, what is better, whether the edge is certainly reached
PICKS = frozenset({"getitem", "gather", "index_select", "take_along_dim", "select"})
# what keeps zeros where they are
ZEROS_STAY = frozenset(
    {"mul", "square", "pow", "sqrt", "view", "reshape", "squeeze", "unsqueeze", "float", "to",
     "getitem", "transpose", "permute", "flatten", "abs", "div"}
)  # fmt: skip
BOUNDED = frozenset(
    {"normalize", "cosine_similarity", "tanh", "sigmoid", "softmax", "log_softmax", "clamp",
     "clamp_max", "minimum", "logsigmoid", "hardtanh", "neg", "square", "layer_norm"}
)  # fmt: skip
PASSES = frozenset(
    {"mul", "div", "add", "view", "reshape", "squeeze", "unsqueeze", "transpose", "permute",
     "matmul", "einsum", "t", "getitem", "float", "to", "masked_fill", "chunk", "split", "flatten"}
)  # fmt: skip
ARCS = frozenset({"acos", "arccos", "asin", "arcsin", "atanh", "arctanh"})
SCORES = frozenset({"linear", "conv1d", "conv2d", "bilinear", "embedding"})


def edge_of(event: ProgramEvent, is_loss: bool) -> Edge | None:
    """Return the edge of its domain that an operation is left to meet; None where it meets none."""
    operation = operation_of(event.result)
    if operation is None or not operation.operands:
        return None
    given = operation.operands[0]
    certain = certain_edge(operation)
    if certain is not None and event.gradients is not Answer.NO:
        return certain
    if operation.name == "sqrt" and _is_half_circle(operation_of(given)):
        return "the root of 1 - x²", "its gradient is infinite at ±1; clamp inside", False
    if not is_loss:
        return None
    if operation.name == "log":
        return _logarithm(given)
    if operation.name == "sqrt":
        return _root(given)
    if operation.name == "div" and _is_norm(operation):
        return "a division by a norm", "F.normalize guards it", False
    if operation.name in ("acos", "arccos") and _is_open(operation_of(given)):
        inner = operation_of(given)
        is_angle = inner is not None and _trace_behind(inner) is not None  # best at the very edge
        return "an arc cosine", "its gradient is infinite at ±1; clamp before", is_angle
    return None


def certain_edge(operation: Operation) -> Edge | None:
    """Return an edge that values surely reach, wherever the operation stands."""
    given = operation.operands[0]
    if operation.name == "log" and reaches_zero(given):
        return "the logarithm of what is exactly 0 at times", "add an epsilon inside", True
    if _is_root(operation) and _is_difference_of_moments(operation_of(given)):
        return "the root of E[x²] - E[x]²", "rounding makes it negative; use var or a clamp", True
    if _is_clamped_to_edge(operation):
        says = "its slope is infinite there; clamp short of the edge"
        return f"{operation.name} of what is clamped to the very edge", says, True
    exponential = _unshifted_exponential(operation)
    if exponential is not None and is_unbounded(exponential):
        return "the exponential of scores without bound", "softmax and logsumexp shift first", True
    if operation.name == "where" and _is_guarded_outside(operation):
        return "a branch of where that is infinite", "its gradient is NaN; clamp inside", True
    if operation.name == "div" and _is_spread_of_relu(operation):
        return "a division by the spread of ReLU outputs", "a dead unit has none; add eps", True
    return None


def _is_clamped_to_edge(operation: Operation) -> bool:
    """`acos(x.clamp(-1, 1))`: who clamps there has met values beyond, and lands on the edge."""
    inner = operation_of(operation.operands[0])
    edges = (-1.0, 1.0) if operation.name in ARCS else (0.0,) if operation.name == "log" else ()
    if inner is None or inner.name not in ("clamp", "clip", "clamp_min", "clamp_max", "hardtanh"):
        return False
    given = [*inner.operands[1:], *(inner.settings.get(name) for name in ("min", "max"))]
    if operation.name == "log":  # the lower end is the edge, whatever the upper one is
        low = inner.settings.get("min", next(iter(inner.operands[1:]), None))
        given = [] if inner.name == "clamp_max" else [low]
    is_default = inner.name == "hardtanh" and len(inner.operands) == 1 and 1.0 in edges
    return is_default or any(number_of(v) in edges for v in given if v is not None)


def reaches_zero(value: Value, depth: int = 12) -> bool:
    """Tell whether a value is exactly 0 at times: a ReLU, a masked softmax, 1 - tanh²."""
    operation = operation_of(value)
    if operation is None or not operation.operands or depth == 0:
        return False
    name, first = operation.name, operation.operands[0]
    if name in ("relu", "relu6", "one_hot"):
        return True
    if name == "softmax":
        return _is_closed(first)
    if name == "sub" and len(operation.operands) == 2 and number_of(first) == 1:
        square = operation_of(operation.operands[1])
        is_of_tanh = square is not None and is_square(square)
        root = operation_of(square.operands[0]) if square is not None and is_of_tanh else None
        return root is not None and root.name == "tanh"
    if name in PICKS and len(operation.operands) > 1 and _is_picked(operation):
        return False
    if name == "mul":
        return any(reaches_zero(v, depth - 1) for v in operation.operands[:2])
    return name in ZEROS_STAY and reaches_zero(first, depth - 1)


def _is_closed(scores: Value, depth: int = 6) -> bool:
    """Tell whether some scores are minus infinity: their probability is exactly 0."""
    for value in same_numbers(scores):
        operation = operation_of(value)
        if operation is None or depth == 0:
            continue
        fill = operation.operands[2] if len(operation.operands) > 2 else None
        if operation.name in ("masked_fill", "where") and _is_minus_infinity(fill):
            return True
        if operation.name in ("div", "mul") and _is_closed(operation.operands[0], depth - 1):
            return True
    return False


def _is_minus_infinity(value: Value | None) -> bool:
    return number_of(value) == float("-inf")


def _is_picked(operation: Operation) -> bool:
    """Tell whether single entries are taken, which may be the ones that cannot be 0."""
    key = operation.operands[-1]
    if operation.name != "getitem":
        return True
    keys = key.members if isinstance(key, Items) else [key]
    found = [v for v in keys if not (isinstance(v, Known) and v.value in (None, ...))]
    slices = (isinstance(v, Result) and v.maker == "builtins.slice" for v in found)
    return not all(slices)


def _is_root(operation: Operation) -> bool:
    is_power = operation.name == "pow" and number_of(operation.operands[-1]) == 0.5
    return is_power or operation.name in ("sqrt", "rsqrt")


def _is_difference_of_moments(operation: Operation | None) -> bool:
    """`(x ** 2).mean() - x.mean() ** 2`."""
    if operation is None or operation.name != "sub" or len(operation.operands) != 2:
        return False
    mean, square = (operation_of(v) for v in operation.operands)
    if mean is None or mean.name != "mean" or not mean.operands or not is_square(square):
        return False
    inner = operation_of(square.operands[0]) if square is not None else None
    return is_square(operation_of(mean.operands[0])) and inner is not None and inner.name == "mean"


def _unshifted_exponential(operation: Operation) -> Value | None:
    """Return the scores of `exp(s) / exp(s).sum()` or of `log(exp(s).sum())`."""
    below = operation.operands[-1] if operation.name in ("div", "log") else None
    total = operation_of(below)
    if total is not None and total.name == "add" and any(map(_is_small, total.operands)):
        total = operation_of(total.operands[0])
    if total is None or total.name != "sum" or not total.operands:
        return None
    exponential = operation_of(total.operands[0])
    if exponential is None or exponential.name != "exp" or not exponential.operands:
        return None
    if operation.name == "div":
        above = operation_of(operation.operands[0])
        if above is None or above.name != "exp" or above.operands[0] is not exponential.operands[0]:
            return None
    return exponential.operands[0]


def is_unbounded(value: Value) -> bool:
    """Tell whether scores come from layers with nothing that keeps them in bounds."""
    leaves = list(_leaves(value))
    return bool(leaves) and all(leaf is Answer.YES for leaf in leaves)


def _leaves(value: Value, depth: int = 20) -> Iterator[Answer]:
    """Yield, for each tensor that scores are made of, whether it is a layer's output as it is."""
    while isinstance(value, Part):
        value = value.of
    if isinstance(value, Known) or (isinstance(value, Result) and value.maker.startswith("math.")):
        return
    operation = operation_of(value)
    if operation is None or depth == 0 or operation.name in BOUNDED:
        yield Answer.NO
    elif operation.name in SCORES:
        yield Answer.YES
    elif operation.name in PASSES:
        count = 2 if operation.name in ("matmul", "add") else 1
        if operation.name == "einsum":
            yield from (a for v in operation.operands[1:] for a in _leaves(v, depth - 1))
        else:
            yield from (a for v in operation.operands[:count] for a in _leaves(v, depth - 1))
    else:
        yield Answer.NO


def _is_guarded_outside(operation: Operation) -> bool:
    """`torch.where(x > 0, x.sqrt(), 0)`: the branch that is not taken still has a gradient."""
    if len(operation.operands) != 3:
        return False
    test = operation_of(operation.operands[0])
    if test is None or test.name not in ("gt", "ge", "lt", "le", "ne", "eq"):
        return False
    for branch in operation.operands[1:]:
        inner = operation_of(branch)
        if inner is None or not inner.operands or not _is_root(inner):
            continue
        if any(v is inner.operands[0] for v in test.operands) and _is_computed(inner.operands[0]):
            return True
    return False


def _is_computed(value: Value) -> bool:
    """Tell whether a layer's output is among what a value comes from."""
    names = (operation_of(v) for v in origins(value, 100))
    return any(o is not None and o.name in SCORES for o in names)


def _is_spread_of_relu(operation: Operation) -> bool:
    """`(h - h.mean(0)) / h.std(0)` of what leaves a ReLU."""
    spread = operation_of(operation.operands[1]) if len(operation.operands) > 1 else None
    if spread is None or spread.name != "std" or not spread.operands:
        return False
    dim = spread.settings.get("dim", next(iter(spread.operands[1:]), None))
    inner = operation_of(spread.operands[0])
    return constant(dim) == 0 and inner is not None and inner.name in ("relu", "relu6")


def _root(given: Value) -> Edge | None:
    says = "its gradient is infinite at 0"
    if is_self_distance(given):
        return "the root of distances of a tensor to itself", f"{says}: the diagonal", True
    if is_sum_of_squares(operation_of(given)):
        return "the root of a sum of squares", says, False
    return None


def _logarithm(given: Value) -> Edge | None:
    found = {content for content, _ in contents(given)}
    if found and found <= PROBABLE:
        name = next(iter(found)).value
        is_whole = found == {Content.PROBABILITIES} and not _is_taken(given)
        return f"the logarithm of a {name}", f"log_{name} (F.logsigmoid) is exact", is_whole
    if _is_mixed(given):
        # 1 - p is 0 as soon as a score is above 17, where p itself takes a score under -100
        is_rest = _is_complement(operation_of(given)) and not _is_taken(given)
        return "the logarithm of a probability", "−∞ once the model is sure and wrong", is_rest
    return None


def _is_complement(operation: Operation | None) -> bool:
    """`1 - p`."""
    is_rest = operation is not None and operation.name == "sub" and len(operation.operands) == 2
    if operation is None or not is_rest or number_of(operation.operands[0]) != 1:
        return False
    found = {content for content, _ in contents(operation.operands[1])}
    return bool(found) and found <= PROBABLE


def _is_taken(value: Value) -> bool:
    """Tell whether single probabilities are taken, as of the action that was drawn by them."""
    operations = (operation_of(v) for v in origins(value, 12))
    return any(isinstance(v, (Part, Choice)) for v in origins(value, 4)) or any(
        o is not None and o.name in PICKS and _is_picked(o) for o in operations
    )


def _is_mixed(value: Value, depth: int = 5) -> bool:
    """Tell whether a value is made of probabilities by nothing but products, sums and 1 - p.

    A small number that is added is a guard, and so is any other operation.
    """
    found = {content for content, _ in contents(value)}
    if found and found <= PROBABLE:
        return True
    operation = operation_of(value)
    if operation is None or operation.name not in ("add", "sub", "mul") or depth == 0:
        return False
    if operation.name == "add" and any(_is_small(v) for v in operation.operands):
        return False
    return any(_is_mixed(v, depth - 1) for v in operation.operands)


def _is_small(value: Value) -> bool:
    """An epsilon, by its value or by its name."""
    number = number_of(value)
    words = ("eps", "smooth", "tiny")
    is_named = any(w in name.lower() for name in names_of(value) for w in words)
    return is_named or (number is not None and number < SMALL)


def _is_half_circle(operation: Operation | None) -> bool:
    """`1 - x ** 2`: the sine of an angle from its cosine."""
    if operation is None or operation.name != "sub" or len(operation.operands) != 2:
        return False
    return number_of(operation.operands[0]) == 1 and is_square(operation_of(operation.operands[1]))


def _is_norm(operation: Operation) -> bool:
    below = operation_of(operation.operands[1]) if len(operation.operands) > 1 else None
    if below is None or below.name not in ("norm", "vector_norm") or not below.operands:
        return False
    return not any(is_parameter(v) for v in origins(below.operands[0], 50))


def _is_open(operation: Operation | None) -> bool:
    """Arithmetic may keep an argument inside its domain; it is given the benefit of the doubt."""
    if operation is not None and (trace := _trace_behind(operation)) is not None:
        operation = operation_of(trace)
    arithmetic = ("add", "sub", "mul", "div", "pow", "neg")
    return operation is None or operation.name not in (*GUARDS, *arithmetic)


def _trace_behind(operation: Operation) -> Value | None:
    """Return the t of `(t - 1) / 2`: the cosine of an angle from the trace of a rotation."""
    is_half = (operation.name, number_of(operation.operands[-1])) in (("div", 2), ("mul", 0.5))
    if operation.name == "mul" and number_of(operation.operands[0]) == 0.5:
        operation, is_half = replace(operation, operands=operation.operands[::-1]), True
    less = operation_of(operation.operands[0]) if is_half else None
    is_less = less is not None and less.name == "sub" and number_of(less.operands[-1]) == 1
    return less.operands[0] if less is not None and is_less else None


def edge_of_exponential(story: Story, loss: Value | None) -> Edge | None:
    """The exponential of a loss function's value, where it is what backward is called on."""
    operation = operation_of(loss)
    if operation is None or operation.name != "exp" or not operation.operands:
        return None
    inside = [(v, operation_of(v)) for v in origins(operation.operands[0], 100)]
    is_guarded = any(o is not None and o.name in GUARDS for _, o in inside)
    is_loss = any(
        (o is not None and o.name in LOSSES)
        or (isinstance(v, Result) and story.kind_of(v.receiver).kind is Kind.LOSS)
        for v, o in inside
    )
    if is_guarded or not is_loss:
        return None
    return "the exponential of a loss", "one sample that is far off makes it infinite", False


@dataclass(frozen=True, eq=False)
class UnguardedEdge:
    """An operation of a loss that breaks at the edge of its domain, with nothing to keep it off."""

    event: ProgramEvent
    edge: Edge
    is_reached: bool  # by what is minimised, for certain


def unguarded_edges(story: Story) -> Iterator[UnguardedEdge]:
    """Yield the operations of a story's losses that break at the edge of their domain."""
    losses = [d.subject for d in story.does(Do.BACKWARD) if d.subject is not None]
    minimised = {id(v) for loss in losses for v in origins(loss)}
    for event in story.events:
        if event.gradients is Answer.NO or event.is_own:
            continue
        is_minimised = id(event.result) in minimised
        edge = edge_of(event, is_minimised or _is_named_for_loss(event))
        if edge is None and any(event.result is loss for loss in losses):
            edge = edge_of_exponential(story, event.result)
        if edge is not None:
            yield UnguardedEdge(event, edge, edge[2] and is_minimised)


def _is_named_for_loss(event: ProgramEvent) -> bool:
    function = event.function
    cls = None if function is None else event.module.class_of(function)
    names = (str(getattr(function, "name", "")), "" if cls is None else cls.name)
    return any("loss" in name.lower() for name in names)
