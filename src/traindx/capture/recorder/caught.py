"""What an exception leaves behind: lines, tensors of the user's frames, modules it passed."""

from __future__ import annotations

import time
from collections import UserDict
from collections.abc import Iterator
from math import nan
from types import FrameType, TracebackType
from typing import Any

import torch

from . import places
from .summaries import shape_of, summarise

MESSAGE_CHARACTERS = 4000
MAX_PLACES = 50
MAX_TENSORS = 60
MAX_FRAMES = 2000  # endless recursion
MAX_ENTRIES = 20  # of one list or dict
MAX_MODULES = 60
TIME_S = 3.0  # the process is ending; nobody waits longer for it

_WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "FullyShardedDataParallel": "module",
    "OptimizedModule": "_orig_mod",
}


def describe(
    kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None
) -> dict[str, Any]:
    """Describe an exception with the tensors and modules of the frames it passed through."""
    deadline = time.monotonic() + TIME_S
    entries = _entries(traceback)
    return {
        "type": type_name(kind),
        "message": _message(error),
        "places": _safely(_places, entries),
        "tensors": _safely(_tensors, entries, deadline),
        "modules": _safely(_modules, entries),
    }


def _safely(function: Any, *arguments: Any) -> list[Any]:
    try:
        result = function(*arguments)
    except Exception:  # objects of the user's may raise anything; the rest is still worth telling
        return []
    return list(result)


def type_name(kind: type[BaseException]) -> str:
    """Return the name of an exception as a traceback shows it."""
    module = str(type.__getattribute__(kind, "__module__"))
    is_plain = module in {"builtins", "__main__"}
    return kind.__qualname__ if is_plain else f"{module}.{kind.__qualname__}"


def _message(error: BaseException | None) -> str:
    try:
        text = "" if error is None else str(error)
    except Exception:  # a broken __str__
        text = "(its message cannot be printed)"
    return text[:MESSAGE_CHARACTERS]


def _entries(traceback: TracebackType | None) -> list[TracebackType]:
    entries: list[TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    if len(entries) > MAX_FRAMES:
        return entries[: MAX_FRAMES // 2] + entries[-MAX_FRAMES // 2 :]
    return entries


def _is_user(entry: TracebackType) -> bool:
    return places.is_user_file(entry.tb_frame.f_code.co_filename)


def _places(entries: list[TracebackType]) -> list[dict[str, Any]]:
    told = [entry for entry in entries if _is_user(entry)]
    if entries and not _is_user(entries[-1]):
        told.append(entries[-1])
    if len(told) > MAX_PLACES:  # of an endless recursion, how it began and how it ended
        told = told[:10] + told[10 - MAX_PLACES :]
    return [places.place_of(entry) for entry in told]


# ---------------------------------------------------------------------------------------- tensors


def is_tensor(value: object) -> bool:
    """Say whether a value is a tensor, without asking the value, which may be a trap."""
    return issubclass(type(value), torch.Tensor)


def tensors_in(name: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a value, also of a list, tuple or dict, with readable names."""
    if is_tensor(value):
        yield name, value
        return
    kind = type(value)
    entries: Any = ()
    if issubclass(kind, (tuple, list)):
        base = tuple if issubclass(kind, tuple) else list
        entries = enumerate(base.__iter__(value))  # type: ignore[arg-type]
    elif issubclass(kind, dict):
        entries = dict.items(value)  # type: ignore[arg-type]
    elif issubclass(kind, UserDict):  # the batch of a tokenizer
        entries = dict(object.__getattribute__(value, "data")).items()
    for count, (key, inner) in enumerate(entries):
        if count >= MAX_ENTRIES:
            return
        if is_tensor(inner) and type(key) in (str, int):
            yield f"{name}[{key!r}]", inner


def _tensors(entries: list[TracebackType], deadline: float) -> list[tuple[str, dict[str, Any]]]:
    functional = next((e for e in reversed(entries) if _is_functional(e.tb_frame)), None)
    told: list[tuple[str, dict[str, Any]]] = []
    known: dict[int, dict[str, Any]] = {}
    for entry in reversed(entries):  # what is nearest to the failure comes first
        if entry is not functional and not _is_user(entry):
            continue
        code = entry.tb_frame.f_code
        where = f"{code.co_name}, line {entry.tb_lineno}"
        if code.co_name == "<module>":
            where = f"line {entry.tb_lineno}"
        for name, tensor in _frame_tensors(entry.tb_frame):
            if len(told) >= MAX_TENSORS:
                return told
            summary = known.get(id(tensor))
            if summary is None:
                summary = known[id(tensor)] = summary_of(tensor, name, deadline)
            told.append((where, {**summary, "name": name}))
    return told


def _is_functional(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")) == "torch.nn.functional"


def _frame_tensors(frame: FrameType) -> Iterator[tuple[str, Any]]:
    names = dict(frame.f_locals)
    for name, value in names.items():
        if name.startswith("__"):
            continue
        try:
            yield from list(tensors_in(name, value))
        except Exception:  # a container that cannot be read
            continue


def summary_of(tensor: Any, name: str, deadline: float = float("inf")) -> dict[str, Any]:
    """Summarise a tensor of any kind; of one that cannot be read, what can be known."""
    if time.monotonic() < deadline:
        try:
            return dict(summarise(tensor, name))
        except Exception:  # freed storage, a device that failed, a type without arithmetic
            pass
    return _outside(tensor, name)


def _outside(tensor: Any, name: str) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "shape": [], "dtype": "", "device": ""}
    try:
        told["dtype"] = str(tensor.dtype).replace("torch.", "")
        told["device"] = str(tensor.device)
        told["shape"] = shape_of(tensor)
    except Exception:  # each of them can raise on a subclass
        pass
    told.update(low=nan, high=nan, mean=nan, std=nan, nonfinite=0)
    return told


# ---------------------------------------------------------------------------------------- modules


def is_module(value: object) -> bool:
    """Say whether a value is a module, without asking the value."""
    return issubclass(type(value), torch.nn.Module)


def _calls(entries: list[TracebackType]) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Yield each module that was being called, with the arguments it was given."""
    last = None
    for entry in entries:
        frame = entry.tb_frame
        code = frame.f_code
        if code.co_name not in {"_call_impl", "forward"} or "self" not in code.co_varnames:
            continue
        names = frame.f_locals
        module = names.get("self")
        if not is_module(module):
            continue
        if code.co_name == "_call_impl":
            arguments, keywords = names.get("args"), names.get("kwargs")
            yield module, tuple(arguments or ()), dict(keywords or {})
        elif module is not last:  # forward was called by hand
            given = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
            yield module, (), {name: names[name] for name in given if name in names}
        last = module


def unwrap(module: Any) -> Any:
    """Return the module that a wrapper (DDP, compile) stands for."""
    for _ in range(5):
        inner = _WRAPPERS.get(type(module).__name__)
        found = None if inner is None else _child(module, inner)
        if found is None:
            return module
        module = found
    return module


def _child(module: Any, name: str) -> Any:
    return (module.__dict__.get("_modules") or {}).get(name)


def argument_shapes(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[list[int]]:
    """Return the shapes of the tensors among the arguments of a call."""
    found = [tensors_in(str(i), value) for i, value in enumerate(arguments)]
    found += [tensors_in(name, value) for name, value in keywords.items()]
    return [shape_of(tensor) for pairs in found for _, tensor in pairs][:MAX_ENTRIES]


def _modules(entries: list[TracebackType]) -> list[tuple[str, str, list[list[int]]]]:
    calls = [call for call in _calls(entries) if unwrap(call[0]) is call[0]]
    if not calls:
        return []
    names = {id(module): name for name, module in calls[0][0].named_modules()}
    told: list[tuple[str, str, list[list[int]]]] = []
    seen: set[int] = set()
    for place, (module, arguments, keywords) in enumerate(calls):
        if id(module) in seen or len(told) >= MAX_MODULES:
            continue
        seen.add(id(module))
        name = names.get(id(module), "")
        told.append((name, type(module).__name__, argument_shapes(arguments, keywords)))
        following = calls[place + 1][0] if place + 1 < len(calls) else None
        told += _passed(module, arguments, name, following)
    return told


def _passed(
    module: Any, arguments: tuple[Any, ...], name: str, failed: Any
) -> list[tuple[str, str, list[list[int]]]]:
    """Return the children of a Sequential that data went through before one failed."""
    if type(module) is not torch.nn.Sequential or len(arguments) != 1 or failed is None:
        return []
    try:
        passed = _shapes_through(module, arguments[0], failed)
    except Exception:
        return []
    prefix = f"{name}." if name else ""
    return [(prefix + key, kind, [shape]) for key, kind, shape in passed[-8:]]


def _shapes_through(sequential: Any, given: Any, failed: Any) -> list[tuple[str, str, list[int]]]:
    """Follow a shape through standard layers on the meta device, where nothing is computed."""
    told: list[tuple[str, str, list[int]]] = []
    with torch.no_grad():
        value = given.to("meta")
        for key, child in sequential.named_children():
            if child is failed:
                return told
            if any(not _is_standard(part) for part in child.modules()):
                return []  # to call the user's code once more could have effects
            told.append((key, type(child).__name__, shape_of(value)))
            tensors = dict(child.named_parameters())
            tensors.update(child.named_buffers())
            shadows = {name: tensor.to("meta") for name, tensor in tensors.items()}
            value = torch.func.functional_call(child, shadows, (value,))
    return []


def _is_standard(module: Any) -> bool:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return type(module).__module__.startswith("torch.nn.modules.") and not any(
        module.__dict__.get(name) for name in hooks
    )
