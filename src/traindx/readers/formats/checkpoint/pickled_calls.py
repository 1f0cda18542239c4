"""What the calls in a checkpoint's pickle stand for: tensors, containers, numbers, objects."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_ELEMENTS = 1 << 48  # of one tensor; no machine holds more
MAX_DIMENSIONS = 64
MAX_NESTING = 8  # a parameter of a subclass of a tensor …

_STORAGE_TYPES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8",
}  # fmt: skip
_SCALARS = {"f8": "<d", "f4": "<f", "f2": "<e", "i8": "<q", "i4": "<i", "i2": "<h", "u8": "<Q",
            "u4": "<I", "i1": "<b", "u1": "<B", "b1": "<?"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Global:
    """A name that the pickle refers to, such as ``torch.FloatStorage``."""

    name: str


@dataclass(slots=True, eq=False)
class PickledObject:
    """An object that loading would make; here it is only described."""

    maker: Any
    arguments: tuple[Any, ...]
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict)
    members: list[Any] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.maker.name if isinstance(self.maker, Global) else ""

    @property
    def attributes(self) -> dict[Any, Any]:
        """Return the object's attributes and items by name."""
        state = self.state
        if isinstance(state, tuple) and len(state) == 2:  # slots beside the attributes
            state = state[1] if isinstance(state[1], dict) and not state[0] else state[0]
        return {**(state if isinstance(state, dict) else {}), **self.items}


@dataclass(frozen=True, slots=True)
class Storage:
    """A run of numbers elsewhere in the file, which tensors are views of."""

    key: str
    dtype: str
    count: int

    @classmethod
    def of(cls, identity: Any) -> Storage | None:
        """Return the storage that a persistent id names: ``("storage", type, key, device, n)``."""
        if not isinstance(identity, tuple) or len(identity) < 5 or identity[0] != "storage":
            return None
        kind, key, count = identity[1], identity[2], identity[4]
        if not isinstance(kind, Global) or not _is_count(count):
            return None
        dtype = _STORAGE_TYPES.get(kind.name.rsplit(".", 1)[-1], kind.name.rsplit(".", 1)[-1])
        return cls(str(key)[:200], dtype, count)


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A tensor: a view of a storage. Without a storage, only its shape is known."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] = ()
    offset: int = 0
    storage: Storage | None = None

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_ELEMENTS


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)) or len(value) > MAX_DIMENSIONS:
        raise ValueError("a tensor has an impossible shape")
    if not all(_is_count(n) for n in value):
        raise ValueError("a tensor has an impossible shape")
    return tuple(value)


def _tensor(storage: Any, offset: Any, shape: Any, stride: Any, dtype: str = "") -> Stored:
    if not isinstance(storage, Storage):
        storage = None  # pickled in another way: only the shape is known
    sizes = _sizes(shape)
    strides = _sizes(stride)
    if len(strides) != len(sizes) or not _is_count(offset):
        raise ValueError("a tensor has an impossible shape")
    made = Stored(dtype or (storage.dtype if storage else ""), sizes, strides, offset, storage)
    if made.size > MAX_ELEMENTS:
        raise ValueError("a tensor has an impossible shape")
    return made


def _dtype(value: Any) -> str:
    return value.name.removeprefix("torch.") if isinstance(value, Global) else ""


def _rebuild_untyped(*args: Any) -> Stored:
    storage, offset, shape, stride = args[:4]
    return _tensor(storage, offset, shape, stride, _dtype(args[6]) if len(args) > 6 else "")


def _rebuild_without_storage(*args: Any) -> Stored:
    sizes = _sizes(args[1])
    return Stored(_dtype(args[0]), sizes)


def _rebuild_sparse(*args: Any) -> Stored:
    shape = args[1][2] if len(args) > 1 and isinstance(args[1], tuple) and len(args[1]) > 2 else ()
    return Stored("sparse", _sizes(shape))


def _scalar(kind: Any, raw: Any = b"") -> Any:
    """Return a numpy scalar as a number; its dtype was described just before."""
    spelled = str(kind.arguments[0]) if isinstance(kind, PickledObject) and kind.arguments else ""
    code = _SCALARS.get(spelled.lstrip("<|=>"))
    order = (
        kind.state[1] if isinstance(kind, PickledObject) and isinstance(kind.state, tuple) else "<"
    )
    if code is None or not isinstance(raw, bytes) or len(raw) != struct.calcsize(code):
        return None
    return struct.unpack(code.replace("<", ">") if order == ">" else code, raw)[0]


def _encode(text: Any, encoding: Any = "latin1") -> Any:
    is_known = isinstance(text, str) and encoding in {"latin1", "latin-1", "utf-8", "utf8", "ascii"}
    return text.encode(encoding) if is_known else b""


def _pairs(items: Any = (), *_: Any) -> dict[Any, Any]:
    if isinstance(items, dict):
        return items
    pairs = items if isinstance(items, (list, tuple)) else ()
    return {p[0]: p[1] for p in pairs if isinstance(p, (list, tuple)) and _is_pair(p)}


def _is_pair(pair: list[Any] | tuple[Any, ...]) -> bool:
    return len(pair) == 2 and isinstance(pair[0], (str, int, float, bytes))


def _first(value: Any = None, *_: Any) -> Any:
    return value


_REBUILD: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": lambda *a: _tensor(*a[:4]),
    "torch._utils._rebuild_tensor_v2": lambda *a: _tensor(*a[:4]),
    "torch._utils._rebuild_qtensor": lambda *a: _tensor(*a[:4]),
    "torch._utils._rebuild_tensor_v3": _rebuild_untyped,
    "torch._utils._rebuild_meta_tensor_no_storage": _rebuild_without_storage,
    "torch._utils._rebuild_sparse_tensor": _rebuild_sparse,
    "torch._utils._rebuild_parameter": _first,
    "torch._utils._rebuild_parameter_with_state": _first,
    "torch.nn.parameter.Parameter": _first,
    "torch.Size": lambda shape=(), *_: tuple(shape) if isinstance(shape, (tuple, list)) else (),
    "torch.device": lambda *parts: ":".join(str(p) for p in parts if isinstance(p, (str, int))),
    "collections.OrderedDict": _pairs,
    "collections.Counter": _pairs,
    "collections.defaultdict": lambda *_: {},
    "builtins.dict": _pairs,
    "builtins.set": lambda items=(), *_: list(items) if isinstance(items, (list, tuple)) else [],
    "builtins.bytearray": lambda *_: b"",
    "_codecs.encode": _encode,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
}
_PYTHON_2 = re.compile(r"^__builtin__\.")


def rebuild(maker: Any, arguments: tuple[Any, ...], depth: int = 0) -> Any:
    """Return what a call would give, if it is one of the few that carry data; else a note of it."""
    name = _PYTHON_2.sub("builtins.", maker.name) if isinstance(maker, Global) else ""
    if name == "torch._tensor._rebuild_from_type_v2" and depth < MAX_NESTING:
        inner = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], tuple) else ()
        return rebuild(arguments[0] if arguments else None, inner, depth + 1)
    known = _REBUILD.get(name)
    if known is None:
        return PickledObject(maker, arguments)
    try:
        return known(*arguments)
    except (TypeError, IndexError):
        raise ValueError(f"{name} is called with the wrong arguments") from None
