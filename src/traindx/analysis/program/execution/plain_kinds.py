"""What sort of plain value something is: a text, a number, a member of an enumeration.

Values of two sorts are never equal: a patient's id that is read from a CSV file is a text, and is
in no set of numbers; a member of an `Enum` equals no text.
"""

from __future__ import annotations

from traindx.analysis.program.execution.values import (
    Choice,
    EnumMember,
    Items,
    Known,
    NeverEqual,
    Part,
    Result,
    Value,
)

Sorts = frozenset[str]
TEXT, NUMBER, NONE = "text", "number", "none"
TEXTS = frozenset({"builtins.str", "str.format", "builtins.repr", "builtins.input", "builtins.chr"})
NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.len", "builtins.round",
                     "builtins.ord"})  # fmt: skip
TEXT_METHODS = frozenset({".strip", ".lower", ".upper", ".replace", ".lstrip", ".rstrip", ".title",
                          ".removeprefix", ".removesuffix", ".format"})  # fmt: skip
JSON = frozenset({"json.load", "json.loads", "yaml.safe_load"})
JSON_SORTS = frozenset({TEXT, NUMBER, NONE, "list", "dict"})
ROWS = frozenset({"csv.reader", "csv.DictReader"})
# arrays of whole numbers, whatever they are asked for
COUNTS = frozenset({"numpy.arange", "torch.arange", "torch.randperm", "torch.randint",
                    "numpy.random.randint", ".integers", "numpy.flatnonzero"})  # fmt: skip
PERMUTES = frozenset({".permutation", "numpy.random.permutation"})
SAME_ELEMENTS = frozenset({"builtins.set", "builtins.list", "builtins.tuple", "builtins.sorted",
                           "builtins.frozenset", "builtins.reversed"})  # fmt: skip
DEPTH = 8


def compared(name: str, left: Value, right: Value) -> Known | None:
    """Return what `==` or `!=` gives for values of two sorts; None where they may be equal."""
    if name not in ("eq", "ne") or not _differ(sorts_of(left), sorts_of(right)):
        return None
    return NeverEqual(name == "ne", (left, right))


def member_of(value: Value, container: Value) -> Known | None:
    """Return False where nothing in a container is of the sort of a value, else None."""
    if _differ(sorts_of(value), element_sorts(container)):
        return NeverEqual(False, (value, container))
    return None


def _differ(one: Sorts | None, other: Sorts | None) -> bool:
    return bool(one) and bool(other) and not (one or frozenset()) & (other or frozenset())


def sorts_of(value: Value, depth: int = DEPTH) -> Sorts | None:
    """Return which sorts of plain value a value may be; None where it may be anything."""
    if isinstance(value, EnumMember):
        return frozenset({f"enum {value.owner}"})
    if isinstance(value, Known):
        return _of_constant(value.value)
    if depth == 0:
        return None
    if isinstance(value, Choice):
        return _together([sorts_of(o, depth - 1) for o in value.options])
    if _is_read(value, JSON):
        return JSON_SORTS
    if _is_entry(value) and _is_read(value, ROWS):
        return frozenset({TEXT, NONE})
    return _of_result(value, depth) if isinstance(value, Result) else None


def _of_constant(value: object) -> Sorts | None:
    if value is None:
        return frozenset({NONE})
    if isinstance(value, str):
        return frozenset({TEXT})
    return frozenset({NUMBER}) if isinstance(value, (int, float)) else None


def _of_result(value: Result, depth: int) -> Sorts | None:
    if value.maker in TEXTS:
        return frozenset({TEXT})
    if value.maker in NUMBERS:
        return frozenset({NUMBER})
    if value.maker in TEXT_METHODS and value.receiver is not None:
        return _only(TEXT, sorts_of(value.receiver, depth - 1))
    if value.maker == "builtins.next" and value.args:
        return element_sorts(value.args[0], depth - 1)
    return None


def _only(sort: str, found: Sorts | None) -> Sorts | None:
    """A method of texts was called: whatever else the value could have been, it is one."""
    return frozenset({sort}) if found is not None and sort in found else None


def element_sorts(value: Value, depth: int = DEPTH) -> Sorts | None:
    """Return which sorts the members of a list, set or array may be."""
    if depth == 0:
        return None
    if isinstance(value, Items):
        return _together([sorts_of(m, depth - 1) for m in value.members])
    if not isinstance(value, Result):
        return None
    if value.maker == "builtins.range":
        return frozenset({NUMBER})
    if value.maker in SAME_ELEMENTS and value.args:
        return element_sorts(value.args[0], depth - 1)
    if value.maker in ("operator.add", "operator.iadd"):
        return _together([element_sorts(a, depth - 1) for a in value.args])
    if value.maker == "operator.mul" and isinstance(value.args[0], Items):
        return element_sorts(value.args[0], depth - 1)
    is_listed = value.maker == ".tolist" and value.receiver is not None
    is_counted = is_listed and value.receiver is not None and _is_of_numbers(value.receiver)
    return frozenset({NUMBER}) if is_counted else None


def _is_of_numbers(value: Value, depth: int = DEPTH) -> bool:
    """Tell whether an array holds whole numbers: a range, an order, a part of one."""
    if not isinstance(value, Result) or depth == 0:
        return False
    if value.maker == "operator.getitem":
        return _is_of_numbers(value.args[0], depth - 1)
    if value.maker in PERMUTES and value.args:
        given = value.args[0]
        return sorts_of(given) == frozenset({NUMBER}) or _is_of_numbers(given, depth - 1)
    return value.maker in COUNTS


def _together(found: list[Sorts | None]) -> Sorts | None:
    if any(f is None for f in found):
        return None
    return frozenset().union(*(f for f in found if f is not None))


def _is_entry(value: Value) -> bool:
    """Tell whether a value is picked out of something: a cell of a row."""
    is_item = isinstance(value, Result) and value.maker == "operator.getitem"
    return is_item or isinstance(value, Part)


def _is_read(value: Value, readers: frozenset[str]) -> bool:
    """Tell whether a value is what a reader gave, or is picked out of that."""
    for _ in range(DEPTH):
        if isinstance(value, Part):
            value = value.of
        elif isinstance(value, Result) and value.maker in readers:
            return True
        elif isinstance(value, Result) and value.maker in ("builtins.next", "operator.getitem"):
            value = value.args[0]
        else:
            return False
    return False
