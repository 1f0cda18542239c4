"""The values that the interpreter computes with in place of tensors, layers and objects.

Numbers, texts, tuples and None stand for themselves; what can change lives on the heap behind a
`Ref`, so that the two sides of a condition can be explored apart and joined again.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from traindx.analysis.program.shapes.sizes import Dim, is_dim
from traindx.analysis.program.syntax import Function, Module

Value = object


@dataclass(frozen=True, slots=True)
class UnknownShape:
    """Something of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Training:
    """`self.training`: both sides of a condition on it do run."""


UNKNOWN = UnknownShape()
TRAINING = Training()


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a tensor; an open shape has an unknown number of dimensions before them."""

    sizes: tuple[Dim, ...] = ()
    is_open: bool = False

    @property
    def rank(self) -> int | None:
        return None if self.is_open else len(self.sizes)

    def __str__(self) -> str:
        parts = [*(["…"] if self.is_open else []), *map(str, self.sizes)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


ANY_SHAPE = Shape((), True)


@dataclass(frozen=True, slots=True, eq=False)
class ShapedTensor:
    """A tensor; two of equal shape are still two."""

    shape: Shape = ANY_SHAPE
    origin: str = ""  # the parameter of `forward` that it is


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A layer of torch.nn with its options by name, and where it was built."""

    kind: str
    options: Mapping[str, Value]
    node: ast.Call
    module: Module

    def number(self, name: str) -> Dim | None:
        """Return an option that is one number."""
        value = self.options.get(name)
        return value if is_dim(value) else None


@dataclass(frozen=True, slots=True)
class Named:
    """Something outside of the project, by its dotted name: `torch.nn.functional.relu`."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class ClassRef:
    """A class of the project."""

    module: Module
    node: ast.ClassDef


@dataclass(frozen=True, slots=True, eq=False)
class FunctionRef:
    """A function or lambda of the project, the names around it, and the object it is bound to."""

    module: Module
    node: Function | ast.Lambda
    around: Mapping[str, Value] = field(default_factory=dict)
    bound: Value = None
    owner: ClassRef | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ShapeMethod:
    """A method of a built-in value: of a tensor, a list, a text."""

    subject: Value
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """A callable with some arguments given before."""

    callee: Value
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """`super()` inside a method: the object and the class whose parents are meant."""

    bound: Value
    owner: ClassRef


@dataclass(frozen=True, slots=True, eq=False)
class SizesOf:
    """`x.shape` of a tensor whose number of dimensions may be unknown."""

    tensor: ShapedTensor


@dataclass(frozen=True, slots=True)
class Ref:
    """A place on the heap."""

    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """What stands at a place: an object, list, dict or container; never changed, only replaced.

    `is_whole` says that `fields` is all there is; a list that an unknown loop filled is not.
    """

    kind: str  # object, list, dict, Sequential, ModuleList, ModuleDict
    fields: Mapping[object, Value]
    cls: ClassRef | None = None
    is_whole: bool = True


@dataclass(slots=True, eq=False)
class CallFrame:
    """One call in progress."""

    module: Module
    names: dict[str, Value] = field(default_factory=dict)
    around: Mapping[str, Value] = field(default_factory=dict)
    owner: ClassRef | None = None
    bound: Value = None
    returns: list[Value] = field(default_factory=list)


LISTS = frozenset({"list", "Sequential", "ModuleList"})
DICTS = frozenset({"dict", "ModuleDict"})


class GiveUp(Exception):
    """The code cannot be followed; the text says why."""


class Mismatch(Exception):
    """Sizes that must agree do not: raised by a rule, given its place by the interpreter."""

    def __init__(self, kind: str, expected: object, got: object, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.expected = expected
        self.got = got
        self.text = text
