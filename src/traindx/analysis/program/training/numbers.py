"""The number that a value is: a constant, or an infinity however it is written."""

from __future__ import annotations

import math

from traindx.analysis.program.execution.values import External, Known, Part, Result, Value, constant

INFINITE = frozenset({"math.inf", "numpy.inf", "torch.inf", "numpy.Inf"})


def number_of(value: Value | None) -> float | None:
    """Return the number that a value is; None where the source does not say it."""
    if isinstance(value, Known):
        known = value.value
        is_number = isinstance(known, (int, float)) and not isinstance(known, bool)
        return float(known) if is_number else None  # type: ignore[arg-type]
    if isinstance(value, External):
        return math.inf if value.name in INFINITE else None
    if isinstance(value, Part) and value.key == "min":
        is_type = isinstance(value.of, Result) and value.of.maker == "torch.finfo"
        return -math.inf if is_type else None
    if not isinstance(value, Result) or not value.args:
        return None
    if value.maker == "operator.neg":
        inner = number_of(value.args[0])
        return None if inner is None else -inner
    if value.maker == "builtins.float":
        return _parsed(constant(value.args[0]))
    return number_of(value.args[0]) if value.maker == "torch.tensor" else None


def _parsed(text: object) -> float | None:
    try:
        return float(text) if isinstance(text, (str, int, float)) else None
    except ValueError:
        return None
