"""The heap of the interpreter: objects and lists that can change, explored apart and joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from traindx.analysis.program.shapes.sizes import Dim
from traindx.analysis.program.shapes.values import (
    DICTS,
    LISTS,
    UNKNOWN,
    ClassRef,
    Layer,
    Record,
    Ref,
    Shape,
    ShapedTensor,
    Value,
)
from traindx.analysis.program.shapes.windows import Symbols


class Memory:
    """Records by number. A record is replaced, never changed, so a copy of the table is a fork."""

    def __init__(self, symbols: Symbols) -> None:
        self.records: dict[int, Record] = {}
        self.symbols = symbols
        self.count = 0

    def new(self, kind: str, fields: Mapping[object, Value], cls: ClassRef | None = None) -> Ref:
        self.count += 1
        self.records[self.count] = Record(kind, dict(fields), cls)
        return Ref(self.count)

    def new_list(self, items: Iterable[Value], kind: str = "list") -> Ref:
        return self.new(kind, dict(enumerate(items)))

    def read(self, ref: Ref) -> Record:
        return self.records[ref.number]

    def write(self, ref: Ref, fields: Mapping[object, Value]) -> None:
        old = self.read(ref)
        self.records[ref.number] = Record(old.kind, dict(fields), old.cls, old.is_whole)

    def set(self, ref: Ref, key: object, value: Value) -> None:
        self.write(ref, {**self.read(ref).fields, key: value})

    def forget(self, ref: Ref) -> None:
        """Forget what a container holds."""
        old = self.read(ref)
        self.records[ref.number] = Record(old.kind, {}, old.cls, False)

    def items(self, value: Value) -> list[Value] | None:
        """Return the members of a list, tuple or container; None where they are not known."""
        if isinstance(value, tuple):
            return list(value)
        if isinstance(value, Ref):
            record = self.read(value)
            if record.is_whole and record.kind in LISTS:
                return list(record.fields.values())
            if record.is_whole and record.kind in DICTS:
                return list(record.fields.keys())
        return None

    def path_to(self, root: Value, layer: Layer, depth: int = 4) -> str | None:
        """Return how an object reaches a layer: `fc1`, `features[3]`, `blocks[0].conv`."""
        if not isinstance(root, Ref) or depth == 0:
            return None
        record = self.read(root)
        for key, value in record.fields.items():
            text = f".{key}" if isinstance(key, str) and record.kind == "object" else f"[{key!r}]"
            if value is layer:
                return text
            below = self.path_to(value, layer, depth - 1)
            if below is not None:
                return text + below
        return None

    def join_records(self, other: Mapping[int, Record]) -> None:
        """Keep what holds after either side of a condition."""
        for number, theirs in other.items():
            mine = self.records.get(number)
            if mine is None:
                self.records[number] = theirs
            elif mine is not theirs:
                self.records[number] = self._joined_record(mine, theirs)

    def _joined_record(self, a: Record, b: Record) -> Record:
        whole = a.is_whole and b.is_whole
        if a.kind != "object" and list(a.fields) != list(b.fields):
            return Record(a.kind, {}, a.cls, False)
        keys = {**a.fields, **b.fields}
        fields = {k: self.join(a.fields.get(k, UNKNOWN), b.fields.get(k, UNKNOWN)) for k in keys}
        return Record(a.kind, fields, a.cls, whole)

    def join(self, a: Value, b: Value) -> Value:
        """Return what is known of a value that is one of two."""
        if a is b or (type(a) is type(b) and a == b):
            return a
        if isinstance(a, ShapedTensor) and isinstance(b, ShapedTensor):
            return ShapedTensor(self._joined_shape(a.shape, b.shape))
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return tuple(self.join(x, y) for x, y in zip(a, b, strict=True))
        return UNKNOWN

    def _joined_shape(self, a: Shape, b: Shape) -> Shape:
        if a == b:
            return a
        if a.rank is not None and a.rank == b.rank:
            pairs = zip(a.sizes, b.sizes, strict=True)
            return Shape(tuple(x if x == y else self.symbols.new() for x, y in pairs))
        kept: list[Dim] = []
        for x, y in zip(reversed(a.sizes), reversed(b.sizes), strict=False):
            if x != y:
                break
            kept.insert(0, x)
        return Shape(tuple(kept), True)
