"""What a mask of padding marks: the tokens or the padding, and whether it leaves a row nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Result,
    Value,
    constant,
    is_same,
    origins,
)
from traindx.analysis.program.training.layers import layer_kind
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

PASSES = frozenset(
    {"getitem", "unsqueeze", "expand", "view", "reshape", "bool", "to", "cuda", "detach", "clone",
     "contiguous", "repeat", "type"}
)  # fmt: skip
FLIPS = frozenset({"operator.invert", "invert", "logical_not", "bitwise_not"})
JOINS = frozenset({"or", "logical_or"})
MEETS = frozenset({"and", "logical_and", "mul"})
MADE_OF = frozenset({"astype", "float", "int", "long", "bool", "tensor", "as_tensor", "from_numpy",
                     "asarray", "array"})  # fmt: skip
LIKELY = 0.5  # rows of a random mask that are expected to be empty


def marks_tokens(story: Story, mask: Value, depth: int = 16) -> bool | None:
    """Tell whether a mask is true for tokens, or for padding; None where that is not known."""
    operation = operation_of(mask)
    if operation is None or not operation.operands or depth == 0:
        return None
    first = operation.operands[0]
    if operation.name in FLIPS:
        found = marks_tokens(story, first, depth - 1)
        return None if found is None else not found
    if operation.name in PASSES:
        return marks_tokens(story, first, depth - 1)
    if len(operation.operands) != 2:
        return None
    if operation.name in ("lt", "ge", "gt", "le"):
        return _before_lengths(operation)
    if operation.name in ("ne", "eq") and isinstance(operation.operands[1], Known):
        is_ids = _is_embedded(story, first)
        return operation.name == "ne" if is_ids and constant(operation.operands[1]) == 0 else None
    return None


def _before_lengths(operation: Operation) -> bool | None:
    """`arange(n) < lengths` marks tokens, `arange(n) >= lengths` padding."""
    counts = [_is_counter(v) for v in operation.operands]
    if counts == [True, False]:
        return operation.name in ("lt", "le")
    return operation.name in ("gt", "ge") if counts == [False, True] else None


def _is_counter(value: Value) -> bool:
    operations = (operation_of(v) for v in origins(value, 12))
    return any(o is not None and o.name == "arange" for o in operations)


def _is_embedded(story: Story, ids: Value) -> bool:
    return any(
        e.name == "()" and layer_kind(e.receiver) == "Embedding" and any(a is ids for a in e.args)
        for e in story.events
    )


def closes_padded_rows(mask: Value) -> bool:
    """Tell whether a mask blocks rows of padding as well as columns: such a row sees nothing."""
    operation = operation_of(mask)
    if operation is None:
        return False
    if operation.name in FLIPS and operation.operands:
        return _is_outer(operation_of(operation.operands[0]), MEETS)
    is_zero = operation.name == "eq" and constant(operation.operands[-1]) in (0, False)
    if is_zero:
        return _is_outer(operation_of(operation.operands[0]), MEETS)
    return _is_outer(operation, JOINS)


def _is_outer(operation: Operation | None, joined: frozenset[str]) -> bool:
    """`v[:, None, :] & v[:, :, None]`: one mask along both dimensions."""
    if operation is None or operation.name not in joined or len(operation.operands) != 2:
        return False
    (first, one), (second, other) = (_raised(v) for v in operation.operands)
    is_one = first is second or is_same(first, second)
    return is_one and one is not None and other is not None and one != other


def _raised(value: Value, depth: int = 6) -> tuple[Value, object]:
    """Return a mask and where it got another dimension; None where it got none."""
    place: object = None
    while depth and isinstance(value, Result):
        depth -= 1
        operation = operation_of(value)
        if operation is None or not operation.operands:
            break
        if operation.name == "unsqueeze" and len(operation.operands) == 2:
            at = constant(operation.operands[1])
            place = {-1: "last", 2: "last", 1: "middle", -2: "middle"}.get(at)  # type: ignore[call-overload]
        elif operation.name == "getitem":
            place = _new_axis(operation.operands[1])
        elif operation.name not in FLIPS:
            break
        value = operation.operands[0]
    return value, place


def _new_axis(key: Value) -> object:
    members = key.members if isinstance(key, Items) else []
    blank = [i for i, m in enumerate(members) if isinstance(m, Known) and m.value is None]
    if len(members) != 3 or len(blank) != 1:
        return None
    return {1: "middle", 2: "last"}.get(blank[0])


def random_empty_rows(mask: Value, depth: int = 8) -> Value | None:
    """Return the random matrix that leaves rows of a mask empty, where that is likely."""
    operation = operation_of(mask)
    if operation is None or not operation.operands or depth == 0:
        return None
    first = operation.operands[0]
    is_open = operation.name == "eq" and constant(operation.operands[-1]) in (0, False)
    if operation.name in FLIPS or is_open:
        return _sparse(first)
    return random_empty_rows(first, depth - 1) if operation.name in PASSES else None


def _sparse(value: Value, depth: int = 8) -> Value | None:
    """`torch.rand(n, n) < p`, where rows without any are to be expected."""
    operation = operation_of(value)
    if operation is None or not operation.operands or depth == 0:
        return None
    if operation.name in (*PASSES, "float", "int", "long"):
        return _sparse(operation.operands[0], depth - 1)
    drawn = operation_of(operation.operands[0])
    share = number_of(operation.operands[-1])
    if operation.name not in ("lt", "gt") or drawn is None or drawn.name != "rand" or share is None:
        return None
    share = share if operation.name == "lt" else 1 - share
    sizes = [n for n in map(constant, drawn.operands) if isinstance(n, int)]
    if len(sizes) != len(drawn.operands) or len(sizes) < 2 or not 0 <= share <= 1:
        return None
    rows, columns = sizes[-2], sizes[-1]
    return value if rows * (1 - share) ** columns >= LIKELY else None


def lonely_rows(mask: Value, depth: int = 12) -> Value | None:
    """Return the matrix of near ones without oneself, whose rows may be empty, under a mask.

    `(d < radius) & (d > 0)`: who has nobody around has nothing to see.
    """
    operation = operation_of(mask)
    if operation is None or not operation.operands or depth == 0:
        return None
    first = operation.operands[0]
    is_zero = operation.name == "eq" and constant(operation.operands[-1]) in (0, False)
    if operation.name in FLIPS or is_zero:
        return _near_others(first)
    is_below = operation.name in ("le", "lt") and number_of(operation.operands[-1]) in (0, 0.5)
    if is_below:
        return _near_others(first)
    return lonely_rows(first, depth - 1) if operation.name in PASSES else None


def _near_others(value: Value, depth: int = 12) -> Value | None:
    operation = operation_of(value)
    name = "" if operation is None else operation.name
    if not name and isinstance(value, Result) and value.maker.rsplit(".", 1)[-1] in MADE_OF:
        return _near_others(value.inputs[0], depth - 1) if value.inputs and depth else None
    if operation is None or not operation.operands or depth == 0:
        return None
    if name in (*PASSES, *MADE_OF):
        return _near_others(operation.operands[0], depth - 1)
    if name not in MEETS or len(operation.operands) != 2:
        return None
    pair = [_plain(v) for v in operation.operands]
    for near, other in (pair, pair[::-1]):
        if near is not None and near.name in ("lt", "le") and _leaves_out_self(near, other):
            return value
    return None


def _plain(value: Value, depth: int = 6) -> Operation | None:
    """Return the operation that made a mask, before it was converted."""
    operation = operation_of(value)
    while operation is not None and operation.name in MADE_OF and depth:
        operation, depth = operation_of(operation.operands[0]), depth - 1
    return operation


def _leaves_out_self(near: Operation, other: Operation | None) -> bool:
    """`d > 0` of the same distances, `~eye(n)`, `1 - eye(n)`."""
    if other is None or not other.operands:
        return False
    is_apart = other.name in ("gt", "ne") and number_of(other.operands[-1]) == 0
    if is_apart:
        return is_same(near.operands[0], other.operands[0])
    last = _plain(other.operands[-1])
    is_rest = other.name == "sub" and number_of(other.operands[0]) == 1
    return (is_rest or other.name in FLIPS) and last is not None and last.name == "eye"
