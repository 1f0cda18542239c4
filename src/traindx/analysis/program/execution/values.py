"""What a program computes with, as far as its source shows it.

A value has an identity: two names that hold one value hold the same object. What was computed keeps
what it was computed from, so that every value knows where it came from.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from traindx.analysis.program.syntax import Function, Module


class Answer(Enum):
    """What can be said of a question: unknown is neither yes nor no."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    @staticmethod
    def of(known: bool | None) -> Answer:
        """Return the answer that a truth value gives; None is unknown."""
        if known is None:
            return Answer.UNKNOWN
        return Answer.YES if known else Answer.NO


@dataclass(slots=True, eq=False)
class Site:
    """A place in the program: a node of the syntax tree and the file it stands in."""

    module: Module
    node: ast.AST


NOT_ASKED = object()


class _Clock:
    """Counts the beginnings of what is taken back later."""

    now = 0


def _now() -> int:
    return _Clock.now


def begin_apart() -> int:
    """Return a number that the values made from now on are not below."""
    _Clock.now += 1
    return _Clock.now


class Fields(dict[Any, "Value"]):
    """The attributes or members of a value; `moment` says when it was made."""

    __slots__ = ("moment",)

    def __init__(self, held: Mapping[Any, Value], moment: int) -> None:
        super().__init__(held)
        self.moment = moment


@dataclass(slots=True, eq=False, kw_only=True)
class Value:
    """Anything that a name can hold; `names` are the names that it was ever bound to."""

    site: Site | None = None
    names: frozenset[str] = frozenset()
    held: Mapping[Any, Value] | None = None  # the fields that it begins with
    moment: int = field(default_factory=_now, init=False)

    @property
    def fields(self) -> dict[Any, Value]:
        """Its attributes or members; most values have none, and hold no dictionary."""
        if type(self.held) is not Fields:
            self.held = Fields(self.held or {}, self.moment)
        return self.held

    def add_name(self, name: str) -> None:
        """Note a name that the value is bound to."""
        if name not in self.names:
            self.names = _with_name(self.names, name)

    def called(self, default: str = "") -> str:
        """Return the shortest of its names, the same one in every run."""
        return min(self.names, key=lambda name: (len(name), name), default=default)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that this one was computed from, in order."""
        return ()


@lru_cache(maxsize=8192)
def _with_name(names: frozenset[str], name: str) -> frozenset[str]:
    """Return some names and one more; the same are one set, for most values have few."""
    return names | {name}


@dataclass(slots=True, eq=False)
class Known(Value):
    """A number, text, truth value or None that the source gives, or computes from `operands`."""

    value: object = None
    operands: tuple[Value, ...] = ()

    @property
    def inputs(self) -> tuple[Value, ...]:
        return self.operands


@dataclass(slots=True, eq=False)
class ModeRead(Known):
    """`model.training` as it was when the program read it."""

    model: Value | None = None


@dataclass(slots=True, eq=False)
class EnumMember(Known):
    """A member of an enumeration, with its value; it equals no text and no number."""

    owner: str = ""
    name: str = ""


@dataclass(slots=True, eq=False)
class NeverEqual(Known):
    """A comparison of two sorts of values, which are never equal: of a text with a number."""


@dataclass(slots=True, eq=False)
class Unknown(Value):
    """A value out of sight: a parameter nobody gives, a name nobody binds."""

    name: str = ""
    annotation: str = ""


@dataclass(slots=True, eq=False)
class External(Value):
    """Something that a library or a file out of sight defines, by its dotted name."""

    name: str


@dataclass(slots=True, eq=False)
class FunctionValue(Value):
    """A function of the project, the scope it was defined in, and the object it is bound to."""

    module: Module
    node: Function | ast.Lambda
    scope: Scope
    bound: Value | None = None
    owner: ClassValue | None = None
    decorators: tuple[Value, ...] = ()  # out of sight: what they do around it is not known


@lru_cache(maxsize=4096)
def _methods_of(node: ast.ClassDef) -> frozenset[str]:
    return frozenset(n.name for n in node.body if isinstance(n, Function))


@dataclass(slots=True, eq=False)
class ClassValue(Value):
    """A class of the project."""

    module: Module
    node: ast.ClassDef
    scope: Scope
    external_bases: tuple[str, ...] = ()
    bases: tuple[ClassValue, ...] = ()

    @property
    def methods(self) -> frozenset[str]:
        """The names of the functions that the class itself defines."""
        return _methods_of(self.node)

    def lineage(self) -> Iterator[ClassValue]:
        """Yield the class and its bases in the project, nearest first."""
        pending, seen = [self], set()
        while pending:
            cls = pending.pop(0)
            if cls.node not in seen:
                seen.add(cls.node)
                yield cls
                pending.extend(cls.bases)

    @property
    def foreign(self) -> tuple[str, ...]:
        """The dotted names of all bases outside of the project."""
        return tuple(name for cls in self.lineage() for name in cls.external_bases)


@dataclass(slots=True, eq=False)
class Instance(Value):
    """An object of a class of the project; `fields` are its attributes."""

    cls: ClassValue
    original: Value | None = None  # what it is a copy of


@dataclass(slots=True, eq=False)
class Items(Value):
    """A list, tuple or set; `fields` are its members by position.

    `is_whole` says that these are all: one that an unknown loop filled is not whole.
    """

    kind: str = "list"
    is_whole: bool = True
    born: tuple[object, ...] = ()  # the turns of loops in which it was made
    ahead: int = 0  # members of one that is not whole which stand first, in their places
    over: Value | None = None  # what a comprehension has one member for each of

    @property
    def members(self) -> list[Value]:
        """What is in it: the fields that are no attributes."""
        return [v for k, v in self.fields.items() if isinstance(k, int) or k[:1] == ("some",)]

    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(self.members)


@dataclass(slots=True, eq=False)
class Table(Value):
    """A dictionary; `fields` are its entries. `factory` makes a value for every key it has not.

    A key that the source does not decide is the value that stands for it.
    """

    is_whole: bool = True
    factory: Value | None = None

    @property
    def open_keys(self) -> list[Value]:
        """The keys that the source does not decide: `k.removeprefix("module.")`, a tensor."""
        return [key for key in self.fields if isinstance(key, Value)]

    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(self.fields.values())


@dataclass(slots=True, eq=False)
class Result(Value):
    """What something outside of the project returned, or an operator computed.

    `maker` is the dotted name of what was called (`torch.optim.Adam`, `operator.add`); a method of
    another value has a maker that begins with a dot (`.softmax`) and a receiver. `gradients` says
    whether autograd recorded then.
    """

    maker: str
    receiver: Value | None = None
    args: tuple[Value, ...] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    gradients: Answer = Answer.YES
    # what it does as an operation on tensors, once that was asked of the whole execution
    operation: Any = field(default=NOT_ASKED, init=False, repr=False)

    @property
    def inputs(self) -> tuple[Value, ...]:
        first = () if self.receiver is None else (self.receiver,)
        return (*first, *self.args, *self.kwargs.values())


@dataclass(slots=True, eq=False)
class Part(Value):
    """An attribute, item or element of a value whose inside is out of sight."""

    of: Value
    key: object

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.of,)


@dataclass(slots=True, eq=False)
class Choice(Value):
    """One of several values, by a condition that the source does not decide."""

    options: tuple[Value, ...]

    @property
    def inputs(self) -> tuple[Value, ...]:
        return self.options


@dataclass(slots=True, eq=False)
class Method(Value):
    """A method of a value that is no object of the project, not called yet."""

    receiver: Value
    name: str

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.receiver,)


@dataclass(slots=True, eq=False)
class PartialCall(Value):
    """A callable with some arguments given before (`functools.partial`)."""

    callee: Value
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.callee, *self.args, *self.kwargs.values())


@dataclass(slots=True, eq=False)
class HandedCall(Value):
    """What a framework hands to a hook to be called: the closure of an optimizer's step."""

    run: Callable[[], Value]


@dataclass(slots=True, eq=False)
class SuperValue(Value):
    """`super()`: the object, and the class after which methods are looked up."""

    bound: Value
    owner: ClassValue


@dataclass(slots=True, eq=False)
class Generator(Value):
    """A call of a generator function that has not run yet: it runs where it is iterated."""

    function: FunctionValue
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (*self.args, *self.kwargs.values())


@dataclass(slots=True, eq=False)
class Scope:
    """The names of a call in progress, or of a file; `around` is the scope it was defined in."""

    module: Module
    names: dict[Any, Value] = field(default_factory=dict)
    around: Scope | None = None
    function: Function | ast.Lambda | None = None
    bound: Value | None = None
    owner: ClassValue | None = None
    returned: list[Value] = field(default_factory=list)
    outer_names: set[str] = field(default_factory=set)  # declared global or nonlocal
    consumer: Callable[[Value], None] | None = None  # what takes the values that it yields

    @property
    def top(self) -> Scope:
        """The scope of the file."""
        scope = self
        while scope.around is not None:
            scope = scope.around
        return scope


MAX_OPTIONS = 6  # of one choice; more say no more


def options_of(value: Value) -> tuple[Value, ...]:
    """Return what a value may be: itself, or the options of a choice."""
    return value.options if isinstance(value, Choice) else (value,)


def joined(first: Value, second: Value) -> Value:
    """Return the value that is one of two."""
    if first is second or _is_same_constant(first, second):
        return first
    options: list[Value] = []
    for option in (*options_of(first), *options_of(second)):
        is_known = isinstance(option, Known) and any(_is_same_constant(option, o) for o in options)
        if not is_known and option not in options:
            options.append(option)
    return options[0] if len(options) == 1 else Choice(tuple(options[:MAX_OPTIONS]))


def _is_same_constant(first: Value, second: Value) -> bool:
    if not (isinstance(first, Known) and isinstance(second, Known)):
        return False
    if isinstance(first, EnumMember) is not isinstance(second, EnumMember):
        return False
    return type(first.value) is type(second.value) and first.value == second.value


def constant(value: Value | None) -> object:
    """Return the constant that a value is, else None."""
    return value.value if isinstance(value, Known) else None


def origins(value: Value, through: int = 4000) -> Iterator[Value]:
    """Yield a value and everything that it was computed from, nearest first.

    Attributes of objects are not inputs: a model is no input of what its optimizer holds.
    """
    pending, seen = deque([value]), {id(value)}
    while pending and through:
        through -= 1
        found = pending.popleft()
        yield found
        for below in found.inputs:
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)


def depends_on(value: Value, other: Value) -> bool:
    """Tell whether a value was computed from another, or is it."""
    return any(v is other for v in origins(value))


def is_same(first: Value, second: Value, depth: int = 6, *, by_turn: bool = False) -> bool:
    """Tell whether two values are one, or were computed alike from the same.

    With `by_turn`, elements of one list that two loops go over count as the same.
    """
    if first is second or _is_same_constant(first, second):
        return True
    if depth == 0 or type(first) is not type(second):
        return False
    if isinstance(first, Result) and isinstance(second, Result):
        if first.maker != second.maker or first.kwargs.keys() != second.kwargs.keys():
            return False
        if first.maker == "builtins.next" and not by_turn:
            return False
    elif isinstance(first, Part) and isinstance(second, Part):
        if first.key != second.key:
            return False
    elif not isinstance(first, Items):
        return False
    ours, theirs = first.inputs, second.inputs
    is_alike = len(ours) == len(theirs) and bool(ours)
    pairs = zip(ours, theirs, strict=is_alike)
    return is_alike and all(is_same(a, b, depth - 1, by_turn=by_turn) for a, b in pairs)
