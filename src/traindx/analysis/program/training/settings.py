"""Settings from the command line: what a value is where nobody gives another."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import namespaces
from traindx.analysis.program.execution.layer_parts import weight_sizes
from traindx.analysis.program.execution.library import FOLDED
from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    options_of,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

ARITHMETIC: dict[str, Callable[..., object]] = {
    f"operator.{f.__name__}": f
    for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv)
} | {"operator.div": operator.truediv}
COMPUTED: dict[str, Callable[..., object]] = {
    **ARITHMETIC,
    **FOLDED,
    "operator.pow": operator.pow,
    "operator.neg": operator.neg,
}
ENVIRONMENT = ("os.getenv", "os.environ.get")
PARSES = (".parse_args", ".parse_known_args")


def constants_of(story: Story, value: Value | None) -> list[object]:
    """Return the constants that a value may be: its own, or the defaults of its setting."""
    if value is None:
        return []
    found: list[object] = []
    for option in options_of(value):
        held = default_of(story, option) or option
        found += [o.value for o in options_of(held) if isinstance(o, Known)]
        if (total := _total(story, held)) is not None:
            found.append(total)
        elif isinstance(held, Result) and held.maker in COMPUTED and not held.kwargs:
            found += _computed(story, held)
        elif _is_size(held) and type(size := story.shapes.of(held)) is int:
            found.append(size)
    return found


def _total(story: Story, value: Value) -> float | None:
    """Return what the numbers of a list add up to, or how many numbers a weight has."""
    if not isinstance(value, Result):
        return None
    if value.maker == ".numel" and value.receiver is not None:
        sizes = weight_sizes(value.receiver)
        return None if sizes is None else _folded(story, sizes, math.prod)
    given = value.args[0] if value.maker == "builtins.sum" and value.args else None
    is_listed = isinstance(given, Items) and given.is_whole and bool(given.members)
    return _folded(story, given.inputs, sum) if given is not None and is_listed else None


def _folded(
    story: Story, values: Iterable[Value], fold: Callable[[list[float]], float]
) -> float | None:
    found = [constants_of(story, value) for value in values]
    known = [n for own in found for n in own if isinstance(n, (int, float))]
    return fold(known) if all(len(own) == 1 for own in found) and len(known) == len(found) else None


def _is_size(value: Value) -> bool:
    """Tell whether a value is asked of the shape of a tensor: `w.shape[1]`, `w.size(0)`."""
    if isinstance(value, Result):
        return value.maker in (".size", ".numel", ".dim") or (
            value.maker == "operator.getitem" and _is_size(value.args[0])
        )
    return isinstance(value, Part) and (value.key == "shape" or _is_size(value.of))


def one_number(story: Story, value: Value | None) -> float | None:
    """Return the one number that a value is, its default included; None where it may be others."""
    if value is None or len(options_of(value)) != 1:
        return None
    found = constants_of(story, value)
    number = found[0] if len(found) == 1 else None
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    return float(number) if is_number and isinstance(number, (int, float)) else None


def is_zero(story: Story, value: Value | None, depth: int = 12) -> bool:
    """Tell whether a number is certainly zero: 0, a default of 0, or a product with such a one."""
    if value is None or depth == 0:
        return False
    options = options_of(value)
    if len(options) > 1:
        return all(is_zero(story, option, depth - 1) for option in options)
    if isinstance(value, Result) and value.maker in ZEROES:
        parts = [is_zero(story, v, depth - 1) for v in value.args]
        if parts and ZEROES[value.maker](parts):
            return True
    found = constants_of(story, value)
    return bool(found) and all(n == 0 and type(n) in (int, float) for n in found)


# when the result is zero, given which operands are
ZEROES: dict[str, Callable[[list[bool]], bool]] = {
    **dict.fromkeys(("operator.mul", "operator.imul"), any),
    **dict.fromkeys(("operator.add", "operator.sub", "operator.iadd"), all),
    **dict.fromkeys(("operator.div", "operator.truediv", "operator.floordiv"), lambda p: p[0]),
    **dict.fromkeys(("operator.neg", "builtins.float", "builtins.abs"), all),
}


def _computed(story: Story, made: Result) -> list[object]:
    """Return what a calculation with settings comes to, where each is one number."""
    operands = [constants_of(story, v) for v in made.args]
    if any(len(o) != 1 or type(o[0]) not in (int, float) for o in operands):
        return []
    try:
        return [COMPUTED[made.maker](*(o[0] for o in operands))]
    except (ArithmeticError, TypeError, ValueError):
        return []


def default_of(story: Story, value: Value) -> Value | None:
    """Return what a setting is where nobody gives another.

    `args.lr` of `add_argument("--lr")`; an entry of a dictionary that the command line may
    change; a variable of the environment with a value for want of one.
    """
    if isinstance(value, Result):
        return value.args[1] if value.maker in ENVIRONMENT and len(value.args) > 1 else None
    if not isinstance(value, Part):
        return None
    owner = default_of(story, value.of) or value.of
    if not isinstance(owner, Result) or owner.maker not in PARSES:
        return namespaces.entry(owner, value.key)
    for event in story.index.named(".add_argument"):
        if value.key in destinations(event.args, event.kwargs):
            return event.kwargs.get("default") or _switch(constant(event.kwargs.get("action")))
    return None


def _switch(action: object) -> Value | None:
    """Return what a switch is that nobody sets: `action="store_true"`."""
    return Known(action == "store_false") if action in ("store_true", "store_false") else None


def destinations(flags: tuple[Value, ...], given: object) -> set[str]:
    """Return the attributes under which an option may be read."""
    named = constant(given.get("dest")) if isinstance(given, dict) else None
    if isinstance(named, str):
        return {named}
    texts = [t for f in flags if isinstance(t := constant(f), str)]
    return {t.lstrip("-").replace("-", "_") for t in texts}
