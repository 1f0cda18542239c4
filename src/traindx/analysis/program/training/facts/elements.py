"""Element types: their names, how they are written, and how two of them combine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindx.analysis.program.execution.values import External, Known, Part, Result, Value

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
SPELLED = {
    "float": "float32", "half": "float16", "double": "float64", "long": "int64", "int": "int32",
    "short": "int16", "byte": "uint8", "bool_": "bool", "single": "float32", "FloatTensor":
    "float32", "LongTensor": "int64", "DoubleTensor": "float64", "IntTensor": "int32",
    "BoolTensor": "bool", "HalfTensor": "float16", "ByteTensor": "uint8", "float_": "float64",
    "int_": "int64",
}  # fmt: skip
PYTHON = {"float": "float64", "int": "int64", "bool": "bool"}


@dataclass(frozen=True, slots=True)
class Element:
    """The type of the numbers of a tensor, of an array, or of a plain number."""

    dtype: str
    holder: str = "tensor"  # or "array", "number"
    is_single: bool | None = None  # without dimensions; None where that is not known

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    def cast(self, dtype: str | None) -> Element | None:
        return None if dtype is None else replace(self, dtype=dtype)


def dtype_named(value: Value | None) -> str | None:
    """Return the type that a value names: `torch.float32`, `np.int64`, `"float32"`, `float`."""
    if isinstance(value, Part) and isinstance(value.of, External):
        return _known(str(value.key), value.of.name)
    if isinstance(value, External):
        home, _, last = value.name.rpartition(".")
        return _known(last, home)
    if isinstance(value, Known) and isinstance(value.value, str):
        home, _, last = value.value.rpartition(".")
        return _known(last, home or "numpy")
    return None


def _known(name: str, home: str) -> str | None:
    if name in FLOATS or name in INTEGERS:
        return name
    if home in ("builtins", "numpy") and name in PYTHON:
        return PYTHON[name]
    is_home = home.split(".", 1)[0] in ("torch", "numpy")
    return SPELLED.get(name) if is_home else None


def is_device(value: Value | None) -> bool:
    """Tell whether an argument of `to` says where, not as what."""
    if isinstance(value, Known):
        is_place = isinstance(value.value, str) and dtype_named(value) is None
        return is_place or isinstance(value.value, int)
    if isinstance(value, Result) and value.maker == "torch.device":
        return True
    if isinstance(value, Part) and value.key in ("device", "gpu", "local_rank"):
        return True
    words = ("device", "dev", "gpu", "cuda", "rank")
    names = () if value is None else value.names
    options = getattr(value, "options", ())
    is_named = any(word in name.lower() for name in names for word in words)
    return is_named or (bool(options) and all(is_device(o) for o in options))


def promoted(elements: Sequence[Element | None]) -> Element | None:
    """Return what two or more operands combine to; None where that is not known."""
    found = elements[0] if elements else None
    for other in elements[1:]:
        found = None if found is None or other is None else _pair(found, other)
    return found


def _pair(first: Element, second: Element) -> Element | None:
    if {first.holder, second.holder} == {"tensor", "array"} and first.holder == "array":
        return None  # an array that meets a tensor may become either
    held = [e for e in (first, second) if e.holder != "number"]
    holder = "tensor" if any(e.holder == "tensor" for e in held) else "array" if held else "number"
    dtype = _stronger(first, second, holder)
    if dtype is None:
        return None
    singles = [e.is_single for e in held]
    is_single = False if False in singles else None if None in singles else True
    return Element(dtype, holder, is_single if held else None)


def _stronger(first: Element, second: Element, holder: str) -> str | None:
    if first.dtype == second.dtype and first.holder == second.holder:
        return first.dtype
    low, high = sorted((first, second), key=lambda e: _rank(e.dtype))
    if _category(low.dtype) == _category(high.dtype):
        if high.holder == "number":
            return low.dtype
        if low.holder == "number":
            return high.dtype
        is_weak = high.is_single is not False and low.is_single is not True
        return None if is_weak else high.dtype  # one number alone does not widen the others
    if high.holder == "number":
        return "float32" if holder == "tensor" else "float64"
    if low.holder == "number":
        return high.dtype
    if high.is_single is not False and low.is_single is not True:
        return None
    is_wide = holder == "array" and low.dtype in ("int32", "int64")
    return "float64" if is_wide else high.dtype


def _rank(dtype: str) -> int:
    return (*INTEGERS, *FLOATS).index(dtype)


def _category(dtype: str) -> str:
    return "bool" if dtype == "bool" else "float" if dtype in FLOATS else "int"
