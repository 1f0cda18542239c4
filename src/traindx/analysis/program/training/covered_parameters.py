"""Which parameters of a model a loop over all of them comes to, by their names and shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.layer_parts import weight_sizes
from traindx.analysis.program.execution.parameter_names import parameters_by_name
from traindx.analysis.program.execution.values import Known, Part, Result, Value, constant

LISTINGS = (".parameters", ".named_parameters")
NAME_TESTS: dict[str, Callable[[str, str], bool]] = {
    ".startswith": str.startswith,
    ".endswith": str.endswith,
}
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "operator.gt": lambda a, b: a > b,
    "operator.ge": lambda a, b: a >= b,
    "operator.lt": lambda a, b: a < b,
    "operator.le": lambda a, b: a <= b,
    "operator.eq": lambda a, b: a == b,
    "operator.ne": lambda a, b: a != b,
}


def covered_parameters(event: ProgramEvent, target: Value) -> list[Value] | None:
    """Return the parameters that an event in a loop over a model's writes to, one after another.

    None where the event is in no such loop, or its conditions ask for more than name and shape.
    """
    covered: list[Value] = []
    for asked in _all_asked(target):
        held = [(asked.holds(g.test), g.holds) for g in event.guards]
        if any(answer is None for answer, _ in held):
            return None
        if all(answer is wanted for answer, wanted in held):
            covered.append(asked.parameter)
    return covered if _all_asked(target) else None


def is_given_to_all(event: ProgramEvent, target: Value, value: Value) -> bool | None:
    """Return the one truth value that an event gives to every parameter of a model.

    None where it leaves parameters out, gives them different ones, or nobody can say.
    """
    every = _all_asked(target)
    covered = covered_parameters(event, target)
    if not every or covered is None or len(covered) != len(every):
        return None
    given = {asked.holds(value) for asked in every}
    return given.pop() if len(given) == 1 else None


def _all_asked(target: Value) -> list[_Asked]:
    """The parameters that a loop's one stands for; none where they are not all in sight."""
    element = target.of if isinstance(target, Part) and target.key == 1 else target
    listing = element.args[0] if isinstance(element, Result) and element.args else None
    is_drawn = isinstance(element, Result) and element.maker == "builtins.next"
    if not is_drawn or not isinstance(listing, Result) or listing.maker not in LISTINGS:
        return []
    found = None if listing.receiver is None else parameters_by_name(listing.receiver)
    if found is None or listing.args or listing.kwargs:
        return []
    return [_Asked(element, target, name, parameter) for name, parameter in found]


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """One parameter of a loop, of which a condition is asked."""

    element: Value
    target: Value
    name: str
    parameter: Value

    def holds(self, test: Value | None) -> bool | None:
        """Tell whether a condition holds for the parameter; None where that is unknown."""
        if isinstance(test, Known):
            return bool(test.value)
        if not isinstance(test, Result):
            return None
        if test.maker == "operator.not":
            inner = self.holds(test.args[0])
            return None if inner is None else not inner
        if test.maker in NAME_TESTS and test.args and self._is_name(test.receiver):
            text = constant(test.args[0])
            return NAME_TESTS[test.maker](self.name, text) if isinstance(text, str) else None
        if test.maker == "operator.in" and self._is_name(test.args[1]):
            text = constant(test.args[0])
            return text in self.name if isinstance(text, str) else None
        return self._compared(test)

    def _compared(self, test: Result) -> bool | None:
        if test.maker not in COMPARED or len(test.args) != 2:
            return None
        first, second = (self._dims(v) for v in test.args)
        return None if first is None or second is None else COMPARED[test.maker](first, second)

    def _dims(self, value: Value) -> int | None:
        """A number, or that of the dimensions of the parameter."""
        number = constant(value)
        if isinstance(number, int):
            return number
        asked = value.args[0] if isinstance(value, Result) and value.args else value
        owner = value.receiver if isinstance(value, Result) else None
        is_dim = isinstance(value, Result) and value.maker == ".dim" and owner is self.target
        is_ndim = isinstance(value, Part) and value.key == "ndim" and value.of is self.target
        is_length = isinstance(value, Result) and value.maker == "builtins.len" and (
            isinstance(asked, Part) and asked.key == "shape" and asked.of is self.target
        )  # fmt: skip
        sizes = weight_sizes(self.parameter) if is_dim or is_ndim or is_length else None
        return None if sizes is None else len(sizes)

    def _is_name(self, value: Value | None) -> bool:
        return isinstance(value, Part) and value.key == 0 and value.of is self.element
