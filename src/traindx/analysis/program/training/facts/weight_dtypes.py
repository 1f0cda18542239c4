"""The element type that the weights of layers have, where a pass goes through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Known, Result, Value
from traindx.analysis.program.training.facts.elements import dtype_named, is_device
from traindx.analysis.program.training.layers import is_module, registered

CONVERSIONS = {".double": "float64", ".half": "float16", ".bfloat16": "bfloat16",
               ".float": "float32"}  # fmt: skip
UNKNOWN = "unknown"
# what sets the precision of a whole run, out of our sight
SETTINGS = frozenset({"precision", "fp16", "bf16", "mixed_precision", "torch_dtype"})


class WeightDtypes:
    """What converts the weights of modules, in order."""

    def __init__(self, events: Iterable[ProgramEvent], default: str | None) -> None:
        self.default = default
        self._parts: dict[int, set[int]] = {}
        self._conversions: list[tuple[int, Value, str]] = []
        for event in events:
            if SETTINGS & event.kwargs.keys() and event.name.rsplit(".", 1)[-1][:1].isupper():
                self.default = None
            if event.act is EventForm.STORE and event.name == "data":
                self.default = None  # parameters one by one
            dtype = _converts(event)
            if dtype is not None and event.receiver is not None:
                self._conversions.append((event.order, event.receiver, dtype))

    @property
    def are_converted(self) -> bool:
        """Whether any module is converted, with all that it keeps."""
        return bool(self._conversions) or self.default is None

    def of(self, layer: Value | None, event: ProgramEvent) -> str | None:
        """Return the element type of a layer's weights at an event; None where not known."""
        if not isinstance(layer, Result):
            return None
        given = layer.kwargs.get("dtype")
        found = self.default
        if given is not None and not (isinstance(given, Known) and given.value is None):
            found = dtype_named(given)
        for _, owner, dtype in self._before(event):
            if not is_module(owner) or id(layer) in self._parts_of(owner):
                found = dtype
        return None if found == UNKNOWN else found

    def _parts_of(self, owner: Value) -> set[int]:
        if id(owner) not in self._parts:
            self._parts[id(owner)] = {id(part) for part in registered(owner)}
        return self._parts[id(owner)]

    def _before(self, event: ProgramEvent) -> Iterator[tuple[int, Value, str]]:
        return (c for c in self._conversions if c[0] < event.order)


def _converts(event: ProgramEvent) -> str | None:
    """Return the type that an event converts a module to; None where it converts none."""
    if event.receiver is None or not (is_module(event.receiver) or event.result is event.receiver):
        return None
    if event.name in CONVERSIONS and not event.args:
        return CONVERSIONS[event.name]
    if event.name not in (".to", ".type", ".to_empty"):
        return None
    for given in (*event.args, *(v for k, v in event.kwargs.items() if k == "dtype")):
        dtype = dtype_named(given)
        if dtype is not None:
            return dtype
        if not is_device(given) and not isinstance(given, Known):
            return UNKNOWN
    return None
