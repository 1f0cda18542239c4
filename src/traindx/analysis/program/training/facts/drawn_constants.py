"""The constants that a collection is drawn from, where all of them are written down."""

from __future__ import annotations

from traindx.analysis.program.execution.values import (
    MAX_OPTIONS,
    Choice,
    Items,
    Known,
    Result,
    Value,
)

# one or several of the members of a collection, any of which may come
PICKS = frozenset({"random.choice", "random.choices", "numpy.random.choice", "builtins.next"})


def constants_in(value: Value, depth: int = 8) -> frozenset[object]:
    """Return the constants that a collection is drawn from; nothing where some are not known."""
    if isinstance(value, Known):
        is_plain = isinstance(value.value, (int, str)) and not isinstance(value.value, bool)
        return frozenset({value.value}) if is_plain else frozenset()
    if isinstance(value, (Choice, Items)):
        is_cut_short = isinstance(value, Choice) and len(value.options) >= MAX_OPTIONS
        found = [constants_in(v, depth - 1) for v in value.inputs] if depth else []
        return frozenset().union(*found) if all(found) and not is_cut_short else frozenset()
    if not isinstance(value, Result) or not value.args or depth == 0:
        return frozenset()
    is_pick = value.maker in PICKS or (value.maker == ".choice" and value.receiver is not None)
    return constants_in(value.args[0], depth - 1) if is_pick else frozenset()
