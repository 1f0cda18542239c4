"""Finds the models and the optimizers of a training process, once, without hooking every call."""

from __future__ import annotations

import dis
import gc
import inspect
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from .places import is_user_file

MAX_FRAMES = 60
MAX_ITEMS = 64
MAX_MODULES = 4000
MAX_PARAMETERS = 20000
_SETTINGS = (
    "lr", "weight_decay", "momentum", "dampening", "nesterov", "betas", "eps", "alpha", "amsgrad",
    "maximize", "max_iter", "history_size",
)  # fmt: skip
_PREFIXES = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_forward_module.")
_WRAPPERS = frozenset(
    {"DistributedDataParallel", "DataParallel", "OptimizedModule", "FullyShardedDataParallel",
     "DeepSpeedEngine"}
)  # fmt: skip
_SENSITIVE = (
    nn.modules.dropout._DropoutNd,
    nn.modules.batchnorm._BatchNorm,
    nn.modules.instancenorm._InstanceNorm,
)
_HOLDS_LOCALS = sys.version_info < (3, 13)
_BETWEEN = frozenset({"CACHE", "PRECALL", "PUSH_NULL"})


class FoundObjects:
    """Modules and optimizers that were come upon."""

    def __init__(self) -> None:
        self.modules: dict[int, nn.Module] = {}
        self.named: set[int] = set()  # modules that a name of the program leads to
        self.optimizers: dict[int, torch.optim.Optimizer] = {}
        self.is_partial = False  # there are names that were not read

    def consider(self, value: Any) -> bool:
        """Keep a module or an optimizer; tell whether it was one."""
        kind = type(value)  # never isinstance: a lazy proxy would be made to import things
        if issubclass(kind, nn.Module):
            if "_parameters" in value.__dict__:  # or else it is being made
                self.modules[id(value)] = value
            return True
        if issubclass(kind, torch.optim.Optimizer):
            inner = value.__dict__.get("optimizer")  # Accelerate's wrapper holds the real one
            if issubclass(type(inner), torch.optim.Optimizer):
                value = inner
            if "param_groups" in value.__dict__:
                self.optimizers[id(value)] = value
            return True
        return False

    def roots(self) -> list[nn.Module]:
        """Return the modules that are part of no other one."""
        inner = {id(m) for root in self.modules.values() for m in _below(root) if m is not root}
        return [m for i, m in self.modules.items() if i not in inner]


def _below(root: nn.Module) -> Iterator[nn.Module]:
    for count, module in enumerate(root.modules()):
        if count > MAX_MODULES:
            return
        yield module


def discover(
    frame: FrameType | None, wanted: Iterable[int], given: Iterable[Any] = ()
) -> FoundObjects:
    """Look in the frames below a call first; ask the garbage collector for what is missing."""
    found = FoundObjects()
    for value in given:
        found.consider(value)
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        _look_into(frame, found)
        frame = frame.f_back
    found.named = set(found.modules)
    if not found.optimizers or not set(wanted) <= _owned(found):
        _search_memory(found)
    if found.is_partial:  # what is trained has a name there; what else is in memory may have none
        trained = set(wanted) | {id(p) for o in found.optimizers.values() for p in _held(o)}
        found.named |= {
            i for i, m in found.modules.items() if any(id(p) in trained for p in m.parameters())
        }
    return found


def _held(optimizer: torch.optim.Optimizer) -> Iterator[nn.Parameter]:
    return (p for group in optimizer.param_groups for p in group["params"])


def _owned(found: FoundObjects) -> set[int]:
    return {id(p) for m in found.modules.values() for p in m.parameters()}


def _look_into(frame: FrameType, found: FoundObjects) -> None:
    is_own = not frame.f_code.co_flags & inspect.CO_OPTIMIZED
    if _HOLDS_LOCALS and not is_own and _asks_for_locals(frame.f_code):
        found.is_partial = True  # the dictionary that the program has asked for is the frame's own
        return
    values = frame.f_locals
    try:
        for value in list(values.values())[:1000]:
            if not found.consider(value):
                _look_inside(value, found, depth=2)
    finally:
        if _HOLDS_LOCALS and not is_own and values is not frame.f_globals:
            values.clear()  # a copy that the frame would keep, and with it every tensor in it


def variable_names(frame: FrameType | None, wanted: set[int]) -> dict[int, str]:
    """Return the names by which the program knows some tensors, by their identity."""
    names: dict[int, str] = {}
    for _ in range(MAX_FRAMES):
        if frame is None or len(names) == len(wanted):
            break
        if is_user_file(frame.f_code.co_filename):
            _name_from(frame, wanted, names)
        frame = frame.f_back
    return names


def _name_from(frame: FrameType, wanted: set[int], names: dict[int, str]) -> None:
    is_own = not frame.f_code.co_flags & inspect.CO_OPTIMIZED
    values: dict[str, Any] = {}
    if not (_HOLDS_LOCALS and not is_own and _asks_for_locals(frame.f_code)):
        values = frame.f_locals
    try:
        for scope in (values, frame.f_globals):
            for name, value in list(scope.items())[:1000]:
                for key, tensor in _named_inside(name, value):
                    if id(tensor) in wanted:
                        names.setdefault(id(tensor), key)
    finally:
        if _HOLDS_LOCALS and not is_own and values is not frame.f_globals:
            values.clear()  # as above


def _named_inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value by its name, and what it holds by the words that lead there."""
    yield name, value
    if type(value) in (list, tuple):
        yield from ((f"{name}[{i}]", item) for i, item in enumerate(value[:MAX_ITEMS]))
    elif type(value) is dict:
        pairs = zip(range(MAX_ITEMS), value.items())
        yield from ((f"{name}[{key!r}]"[:80], item) for _, (key, item) in pairs)
    elif not issubclass(type(value), (torch.Tensor, type, nn.Module)):
        own = _attributes(value)
        if type(own) is dict and type(value).__module__ not in ("builtins", "types"):
            pairs = zip(range(MAX_ITEMS), own.items())
            yield from ((f"{name}.{key}", item) for _, (key, item) in pairs)


def _asks_for_locals(code: CodeType) -> bool:
    """Tell whether a function calls `locals()`, or `vars()` of nothing, as it does of arguments."""
    if "locals" in code.co_names:
        return True
    if "vars" not in code.co_names:
        return False
    steps = [s for s in dis.get_instructions(code) if s.opname not in _BETWEEN]
    calls = [steps[i + 1] for i, step in enumerate(steps[:-1]) if step.argval == "vars"]
    return any(call.opname.startswith("CALL") and not call.arg for call in calls)


def _look_inside(value: Any, found: FoundObjects, depth: int) -> None:
    if issubclass(type(value), (str, bytes, int, float, torch.Tensor, type)) or depth == 0:
        return
    items: list[Any] = []
    if type(value) in (list, tuple):
        items = list(value[:MAX_ITEMS])
    elif type(value) is dict:
        items = [v for _, v in zip(range(MAX_ITEMS), value.values())]
    else:
        own = _attributes(value)
        if type(own) is dict and type(value).__module__ not in ("builtins", "types"):
            items = [v for _, v in zip(range(MAX_ITEMS), own.values())]
    for item in items:
        if not found.consider(item):
            _look_inside(item, found, depth - 1)


def _attributes(value: Any) -> Any:
    """Return what an object holds, without asking the object, which may be a trap."""
    try:
        return object.__getattribute__(value, "__dict__")
    except Exception:  # it has none, or none yet
        return None


def _search_memory(found: FoundObjects) -> None:
    for value in gc.get_objects():
        kind = type(value)
        if issubclass(kind, (nn.Module, torch.optim.Optimizer)) and kind.__module__ != __name__:
            found.consider(value)


def parameters(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Return the parameters of a model by the names that its author knows."""
    named = []
    for name, parameter in module.named_parameters():
        if is_lazy(parameter):
            continue  # no shape, no values: not known before its first call
        named.append((plain(name), parameter))
        if len(named) >= MAX_PARAMETERS:
            break
    return named


def plain(name: str) -> str:
    """Return a dotted name without what wrappers put into it."""
    for prefix in _PREFIXES:
        name = name.replace(f".{prefix}", ".")
        while name.startswith(prefix):
            name = name[len(prefix) :]
    return name


def sensitive(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the parts whose behaviour depends on the mode: dropout and batch statistics."""
    parts = []
    for name, part in module.named_modules():
        if not isinstance(part, _SENSITIVE):
            continue
        is_idle = isinstance(part, nn.modules.dropout._DropoutNd) and part.p == 0
        tracks = getattr(part, "track_running_stats", True)
        if not is_idle and tracks:
            parts.append((plain(name), part))
    return parts


def describe_model(
    module: nn.Module, owners: dict[int, int]
) -> tuple[dict[str, Any], list[tuple[str, nn.Parameter]]]:
    """Return the record of a model, and its parameters."""
    named = parameters(module)
    inner = module
    while type(inner).__name__ in _WRAPPERS:
        below = inner._modules.get("module") or inner._modules.get("_orig_mod")
        if below is None:
            break
        inner = below
    wrapper = type(module).__name__ if inner is not module else ""
    record = {
        "type": type(inner).__name__,
        "wrapper": wrapper,
        "is_compiled": is_compiled(module),
        "is_sharded": _is_sharded(module),
        "parameters": [
            {
                "name": name,
                "shape": [int(n) for n in p.shape],
                "dtype": str(p.dtype).replace("torch.", ""),
                "is_trainable": bool(p.requires_grad),
                "optimizer": owners.get(id(p)),
            }
            for name, p in named
        ],
        "modules": [
            {"name": plain(n), "type": type(m).__name__}
            for _, (n, m) in zip(range(MAX_MODULES), inner.named_modules())
        ],
    }
    return record, named


def _is_sharded(module: nn.Module) -> bool:
    """Tell whether ranks hold parts of the weights: FSDP names its classes after itself."""
    names = {type(m).__name__ for m in _below(module)}
    return any(n.startswith(("FSDP", "FullySharded")) for n in names) or any(
        type(p).__name__ == "DTensor" for p in module.parameters()
    )


def is_compiled(module: nn.Module) -> bool:
    """Tell whether torch.compile has a hand in calls of this module."""
    return (
        type(module).__name__ == "OptimizedModule"
        or getattr(module, "_compiled_call_impl", None) is not None
    )


def describe_optimizer(
    optimizer: torch.optim.Optimizer, known: set[int], others: set[int]
) -> dict[str, Any]:
    """Return the record of an optimizer with its settings."""
    held = [p for group in optimizer.param_groups for p in group["params"]]
    return {
        "type": type(optimizer).__name__,
        "groups": [
            {
                **{k: _setting(group[k]) for k in _SETTINGS if k in group},
                "parameters": len(group["params"]),
            }
            for group in optimizer.param_groups[:MAX_ITEMS]
        ],
        "size": len(held),
        "strangers": sum(id(p) not in known for p in held),
        "shared": sum(id(p) in others for p in held),
    }


def _setting(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return float(value) if value.device.type == "cpu" and value.numel() == 1 else None
    if isinstance(value, (tuple, list)):
        return [_setting(v) for v in value[:8]]
    return value if isinstance(value, (int, float, bool, str)) or value is None else str(value)[:80]
