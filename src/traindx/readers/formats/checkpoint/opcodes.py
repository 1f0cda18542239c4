"""The instructions of a pickle, followed without executing any of them.

A pickle is a program: it names functions and calls them. This reads the program and notes what it
would do. Containers, strings and numbers are built, tensors become `Stored` placeholders, and every
other call becomes a `Made` note of what would have been called. Nothing is imported, nothing runs.
"""

from __future__ import annotations

import io
import pickletools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from traindx.readers.formats.checkpoint.pickled_calls import (
    Global,
    PickledObject,
    Storage,
    Stored,
    rebuild,
)

MAX_INSTRUCTIONS = 2_000_000  # some seconds; a large model with its optimizer has 200 000
MAX_GLOBALS = 10_000
MAX_NESTED = 2
NESTED_BYTES = 1 << 14  # a pickled tensor names its type at its beginning
LONGEST_KEY = 16  # parts of a tuple that is a key
_PLAIN = (str, int, float, bool, bytes, type(None))
_MARK = object()

_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": list,
    "NEXT_BUFFER": lambda: None,
}
_LITERALS = frozenset(
    {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "STRING", "BINSTRING",
     "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE",
     "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "FLOAT", "BINFLOAT"}
)  # fmt: skip
_IGNORED = frozenset({"PROTO", "FRAME", "READONLY_BUFFER"})
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(slots=True)
class Unpickled:
    """What a pickle describes; `problem` says why the rest of it could not be followed."""

    value: Any = None
    globals: dict[str, None] = field(default_factory=dict)
    storages: dict[str, Storage] = field(default_factory=dict)
    problem: str = ""
    was_cut: bool = False


def follow(data: bytes | io.BytesIO, depth: int = 0) -> Unpickled:
    """Follow one pickle to its end; a stream is left behind it."""
    machine = _Machine(depth)
    found = machine.found
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in a stranger's strings
            for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
                if count >= MAX_INSTRUCTIONS:
                    found.was_cut = True
                    break
                machine.step(opcode.name, argument)
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        found.problem = str(error).split("\n", 1)[0][:200] or type(error).__name__
    found.value = machine.result()
    return found


class _Machine:
    """The stack and the memo of a pickle, and what it refers to."""

    def __init__(self, depth: int = 0) -> None:
        self.found = Unpickled()
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.depth = depth
        self.nested = 0

    def result(self) -> Any:
        """Return the value; of a pickle that was cut, put what waits on the stack in its place."""
        while any(v is _MARK for v in self.stack):
            waiting = self._to_mark()
            if not self.stack or self.stack[-1] is _MARK:
                self.stack.append(tuple(waiting))
            elif isinstance(self.stack[-1], list):
                self._extend(waiting)
            else:
                self._set(waiting)
        return self.stack[0] if self.stack else None

    def step(self, name: str, argument: Any) -> None:
        if name in _LITERALS:
            self.stack.append(bytes(argument) if isinstance(argument, bytearray) else argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in _TUPLES:
            self.stack.append(tuple(self._take(_TUPLES[name])))
        elif name == "MARK":
            self.stack.append(_MARK)
        elif name not in _IGNORED:
            handler = _HANDLERS.get(name)
            if handler is None:
                raise ValueError(f"unknown instruction {name}")
            handler(self, argument)

    def _pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise ValueError("an instruction lacks its operand")
        return self.stack.pop()

    def _take(self, count: int) -> list[Any]:
        taken = [self._pop() for _ in range(count)]
        return taken[::-1]

    def _top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise ValueError("an instruction lacks its operand")
        return self.stack[-1]

    def _to_mark(self) -> list[Any]:
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                items = self.stack[i + 1 :]
                del self.stack[i:]
                return items
        raise ValueError("an instruction lacks its mark")

    def _global(self, name: str) -> Global:
        if len(self.found.globals) < MAX_GLOBALS:
            self.found.globals.setdefault(name[:500])
        return Global(name[:500])

    def put(self, argument: Any) -> None:
        self.memo[int(argument)] = self._top()

    def memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self._top()

    def get(self, argument: Any) -> None:
        index = int(argument)
        if index not in self.memo:
            raise ValueError(f"it refers to memo {index}, which it never filled")
        self.stack.append(self.memo[index])

    def pop(self, _: Any) -> None:
        if not self.stack:
            raise ValueError("an instruction lacks its operand")
        self.stack.pop()

    def pop_mark(self, _: Any) -> None:
        self._to_mark()

    def duplicate(self, _: Any) -> None:
        self.stack.append(self._top())

    def tuple_(self, _: Any) -> None:
        self.stack.append(tuple(self._to_mark()))

    def list_(self, _: Any) -> None:
        self.stack.append(self._to_mark())

    def dict_(self, _: Any) -> None:
        items = self._to_mark()
        self.stack.append({})
        self._set(items)

    def append(self, _: Any) -> None:
        item = self._pop()
        self._extend([item])

    def appends(self, _: Any) -> None:
        self._extend(self._to_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self._top()
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, PickledObject):
            target.members.extend(items)

    def set_item(self, _: Any) -> None:
        self._set(self._take(2))

    def set_items(self, _: Any) -> None:
        self._set(self._to_mark())

    def _set(self, items: list[Any]) -> None:
        target = self._top()
        target = target.items if isinstance(target, PickledObject) else target
        if isinstance(target, dict):
            for key, value in zip(items[::2], items[1::2], strict=False):
                target[_as_key(key)] = value

    def name_global(self, argument: Any) -> None:
        module, _, name = str(argument).partition(" ")
        self.stack.append(self._global(f"{module}.{name}"))

    def stack_global(self, _: Any) -> None:
        module, name = self._take(2)
        is_written = isinstance(module, str) and isinstance(name, str)
        self.stack.append(self._global(f"{module}.{name}" if is_written else "(computed)"))

    def extension(self, argument: Any) -> None:
        self.stack.append(self._global(f"copyreg.extension_{argument}"))

    def reduce(self, _: Any) -> None:
        maker, arguments = self._take(2)
        arguments = arguments if isinstance(arguments, tuple) else ()
        if isinstance(maker, Global) and maker.name in _GETATTR and len(arguments) >= 2:
            target, attribute = arguments[:2]
            named = target.name if isinstance(target, Global) else "(object)"
            self.stack.append(self._global(f"{named}.{attribute}"))  # what it gets counts as named
            return
        if isinstance(maker, Global) and maker.name == _NESTED and arguments:
            self._look_into(arguments[0])
        self.stack.append(rebuild(maker, arguments))

    def _look_into(self, data: Any) -> None:
        """Note what a pickle inside the pickle refers to; a pickled tensor is such a one."""
        if not isinstance(data, bytes) or self.depth >= MAX_NESTED or self.nested >= MAX_GLOBALS:
            return
        self.nested += 1
        stream = io.BytesIO(data[:NESTED_BYTES])
        for _ in range(5):  # the parts of a file in the old format
            inner = follow(stream, self.depth + 1)
            for name in inner.globals:
                self._global(name)
            if inner.problem:
                return

    def new_object(self, _: Any) -> None:
        maker, arguments = self._take(2)
        self.stack.append(rebuild(maker, arguments if isinstance(arguments, tuple) else ()))

    def new_object_ex(self, _: Any) -> None:
        maker, arguments, _named = self._take(3)
        self.stack.append(rebuild(maker, arguments if isinstance(arguments, tuple) else ()))

    def instance(self, argument: Any) -> None:
        arguments = tuple(self._to_mark())
        module, _, name = str(argument).partition(" ")
        self.stack.append(rebuild(self._global(f"{module}.{name}"), arguments))

    def object_(self, _: Any) -> None:
        items = self._to_mark()
        maker = items[0] if items else None
        self.stack.append(rebuild(maker, tuple(items[1:])))

    def build(self, _: Any) -> None:
        state = self._pop()
        target = self._top()
        if isinstance(target, PickledObject):
            target.state = state

    def persistent(self, argument: Any) -> None:
        self.stack.append(self._storage((argument,)))

    def binary_persistent(self, _: Any) -> None:
        self.stack.append(self._storage(self._pop()))

    def _storage(self, identity: Any) -> Any:
        storage = Storage.of(identity)
        if storage is not None:
            self.found.storages.setdefault(storage.key, storage)
        return storage

    def stop(self, _: Any) -> None:
        self.stack = [self._pop()]


def _as_key(key: Any) -> Any:
    """Return what may safely be hashed: a nested tuple could take the hash down or for ever."""
    if isinstance(key, _PLAIN):
        return key
    is_short = isinstance(key, tuple) and len(key) <= LONGEST_KEY
    if is_short and all(isinstance(part, _PLAIN) for part in key):
        return key
    if isinstance(key, (Global, Stored)):
        return f"<{key.name if isinstance(key, Global) else 'tensor'}>"
    return f"<{type(key).__name__}>"


_NESTED = "torch.storage._load_from_bytes"
_GETATTR = frozenset({"builtins.getattr", "__builtin__.getattr"})
_HANDLERS: dict[str, Callable[[_Machine, Any], None]] = {
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.memoize,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_mark,
    "DUP": _Machine.duplicate,
    "TUPLE": _Machine.tuple_,
    "LIST": _Machine.list_,
    "DICT": _Machine.dict_,
    "FROZENSET": _Machine.list_,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "ADDITEMS": _Machine.appends,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "GLOBAL": _Machine.name_global,
    "STACK_GLOBAL": _Machine.stack_global,
    "EXT1": _Machine.extension,
    "EXT2": _Machine.extension,
    "EXT4": _Machine.extension,
    "REDUCE": _Machine.reduce,
    "NEWOBJ": _Machine.new_object,
    "NEWOBJ_EX": _Machine.new_object_ex,
    "INST": _Machine.instance,
    "OBJ": _Machine.object_,
    "BUILD": _Machine.build,
    "PERSID": _Machine.persistent,
    "BINPERSID": _Machine.binary_persistent,
    "STOP": _Machine.stop,
}
