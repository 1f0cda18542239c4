"""What conditions say of each other: which two cannot hold at once, however they are written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from traindx.analysis.program.execution.events import Guard
from traindx.analysis.program.execution.values import Known, Part, Result, Value, options_of

NEGATED = {"operator.is_not": "operator.is", "operator.ne": "operator.eq",
           "operator.ge": "operator.lt", "operator.le": "operator.gt",
           "operator.not_in": "operator.in"}  # fmt: skip
DEEP = 6


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """What is asked of a value, and whether it holds; compared to nothing, whether it is true."""

    subject: Value
    asked: str = ""
    other: Value | None = None
    holds: bool = True

    @property
    def is_of_none(self) -> bool:
        """Whether a value is asked to be None."""
        compared = self.asked in ("operator.is", "operator.eq")
        return compared and isinstance(self.other, Known) and self.other.value is None


@lru_cache(maxsize=2048)  # asked of every pair of guards
def condition_of(guard: Guard) -> Condition | None:
    """Return what a guard asks, without its negations."""
    test, holds = guard.test, guard.holds
    while isinstance(test, Result) and test.maker in ("operator.not", "builtins.bool"):
        if not test.args:
            return None
        holds = holds is not (test.maker == "operator.not")
        test = test.args[0]
    if test is None:
        return None
    if isinstance(test, Result) and len(test.args) == 2:
        asked = NEGATED.get(test.maker, test.maker)
        if asked in NEGATED.values():
            is_turned = test.maker in NEGATED
            return Condition(test.args[0], asked, test.args[1], holds is not is_turned)
    return Condition(test, holds=holds)


def contradicts(one: Guard, other: Guard) -> bool:
    """Tell whether two guards, each as it went, cannot both hold of the same values."""
    first, second = condition_of(one), condition_of(other)
    if first is None or second is None or not is_one_value(first.subject, second.subject):
        return False
    if first.asked == second.asked:
        if _is_one(first.other, second.other):
            return first.holds is not second.holds
        is_equality = first.asked in ("operator.eq", "operator.is")
        return is_equality and first.holds and second.holds and _are_unequal(first, second)
    pairs = ((first, second), (second, first))
    return any(a.is_of_none and not b.asked and _is_none_or_true(a, b) for a, b in pairs)


def _is_none_or_true(asked: Condition, true: Condition) -> bool:
    """Tell whether a value is None on one way and true on the other, or the other way round."""
    if asked.holds and true.holds:
        return True
    may_be_none = any(isinstance(o, Known) and o.value is None for o in options_of(asked.subject))
    return not asked.holds and not true.holds and may_be_none  # an object, or None


def _are_unequal(first: Condition, second: Condition) -> bool:
    ours, theirs = first.other, second.other
    are_known = isinstance(ours, Known) and isinstance(theirs, Known)
    return are_known and ours.value != theirs.value  # type: ignore[union-attr]


def _is_one(one: Value | None, other: Value | None) -> bool:
    return one is other or (one is not None and other is not None and is_one_value(one, other))


def is_one_value(one: Value, other: Value, depth: int = DEEP) -> bool:
    """Tell whether two values are certainly one: the same, or read or compared alike from one.

    What is called anew may give something else.
    """
    if one is other:
        return True
    if depth == 0 or type(one) is not type(other):
        return False
    if isinstance(one, Known) and isinstance(other, Known):
        return type(one.value) is type(other.value) and one.value == other.value
    if isinstance(one, Part) and isinstance(other, Part):
        return one.key == other.key and is_one_value(one.of, other.of, depth - 1)
    if not isinstance(one, Result) or not isinstance(other, Result):
        return False
    if one.maker != other.maker or not one.maker.startswith("operator."):
        return False
    return len(one.args) == len(other.args) and all(
        is_one_value(a, b, depth - 1) for a, b in zip(one.args, other.args, strict=True)
    )
