"""Sees every operation of a replay, and where a value that is no number comes from."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import places
from .caught import is_module, summary_of
from .reasons import explain
from .summaries import is_sound, local_part

MAX_EVENTS = 50
# Operations by which an infinity is written on purpose, as masks are.
FILLING = frozenset(
    {"fill", "masked_fill", "where", "full", "full_like", "triu", "tril", "new_full",
     "scalar_tensor", "lift_fresh", "lift_fresh_copy", "constant_pad_nd", "masked_scatter",
     "index_fill", "scatter", "copy"}
)  # fmt: skip
MAKING_ROOM = frozenset(
    {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "resize", "set"}
)
OVERWRITING = frozenset({"copy", "fill", "zero"})
GROWING = frozenset({"exp", "exp2", "expm1"})  # minus infinity cannot make them overflow


class ReplayTimeout(BaseException):
    """The replay takes too long; not an Exception, so that no code of the user's swallows it."""


class HasEffects(BaseException):
    """The replay was about to change a tensor of the user's, or to talk to another rank."""


@dataclass
class NonFiniteEvent:
    """An operation that gave NaN or infinity where its inputs had none; or where one came in."""

    kind: str  # nan, inf, mask, source
    op: str = ""
    stack: list[Any] = field(default_factory=list)  # the modules being executed, outermost first
    place: dict[str, Any] | None = None
    inputs: list[dict[str, Any]] = field(default_factory=list)
    why: str = ""
    tensor: Any = None  # of a source
    is_down: bool = False  # of a source: all that is bad in it is minus infinity


class Watcher(TorchDispatchMode):  # type: ignore[misc]
    """Watches operations, follows non-finite values, and stops what would have effects."""

    def __init__(self, deadline: float, *, is_looking: bool = True, own: Any = ()) -> None:
        super().__init__()
        self.events: list[NonFiniteEvent] = []
        self._deadline = deadline
        self._is_looking = is_looking
        self._made = {storage_of(tensor) for tensor in own}
        self._origins: dict[int, set[int]] = {}
        self._kept: list[Any] = []  # so that no address is used twice

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or else the compiler is imported, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if time.monotonic() > self._deadline:
            raise ReplayTimeout
        name = func._schema.name
        if "c10d" in name:
            raise HasEffects(name)
        written = list(_written(func, args, keywords))
        for tensor in written:
            if storage_of(tensor) not in self._made:
                raise HasEffects(name)
        copies = {id(t): t.clone() for t in written} if self._is_looking else {}
        result = func(*args, **keywords)
        self._note_new(args, keywords, result)
        op = op_name(func)
        if self._is_looking and op not in MAKING_ROOM:
            self._look(op, _Call(args, keywords, copies), result, sys._getframe(1))
        return result

    def _note_new(self, args: Any, keywords: Any, result: Any) -> None:
        """Note memory that came to be; a view of the user's tensor is still the user's."""
        given = {storage_of(t) for value in (*args, *keywords.values()) for t in _tensors(value)}
        self._made.update({storage_of(tensor) for tensor in _tensors(result)} - given)

    def _look(self, op: str, call: _Call, result: Any, frame: FrameType) -> None:
        bad = [tensor for tensor in _tensors(result) if has_bad(tensor)]
        if not bad:
            return
        is_new = op in OVERWRITING and bool(call.copies)
        came = [pair for pair in call.inputs(is_new) if has_bad(pair[1])]
        origins: set[int] = set()
        for original, _ in came:
            origins |= self._origin(original)
        kind = _judge(op, bad, [before for _, before in came])
        if kind == "inf" and op == "log" and all(map(_is_choice, _tensors(call.args))):
            kind = "mask"  # the logarithm of a mask of zeros and ones, to be added to scores
        if kind and len(self.events) < MAX_EVENTS:
            inputs = [before for _, before in call.inputs(is_new)]
            origins = origins | {len(self.events)}
            self.events.append(
                NonFiniteEvent(
                    kind,
                    op,
                    stack=modules_of(frame),
                    place=places.user_place(frame),
                    inputs=[summary_of(t, f"input {i}") for i, t in enumerate(inputs[:4], 1)],
                    why=explain(op, *call.before(), bad[0]),
                )
            )
        for tensor in bad:
            self._origins[storage_of(tensor)] = origins
            self._kept.append(tensor)

    def _origin(self, tensor: Any) -> set[int]:
        """Return the events that a bad tensor goes back to; one from outside is an event itself."""
        key = storage_of(tensor)
        if key not in self._origins:
            self._origins[key] = {len(self.events)}
            self._kept.append(tensor)
            kind = "mask" if _is_additive_mask(tensor) else "source"
            inputs = [summary_of(tensor, "")]
            is_down = bool((torch.isneginf(tensor) | torch.isfinite(tensor)).all())
            self.events.append(NonFiniteEvent(kind, tensor=tensor, inputs=inputs, is_down=is_down))
        return self._origins[key]

    def has_made(self, tensor: Any) -> bool:
        """Say whether a tensor came to be under this watcher's eyes."""
        return storage_of(tensor) in self._made

    def behind(self, tensor: Any) -> list[NonFiniteEvent]:
        """Return the events that a bad tensor goes back to, in the order they happened."""
        return [self.events[i] for i in sorted(self._origins.get(storage_of(tensor), ()))]


def op_name(func: Any) -> str:
    """Return the name of an operation as people write it: `_softmax.default` is softmax."""
    name: str = func._schema.name.rsplit("::", 1)[-1].strip("_")
    if name.startswith("scaled_dot_product"):
        return "scaled_dot_product_attention"
    name = name.removesuffix("_forward").replace("native_", "").replace("nll_loss2d", "nll_loss")
    return {"to_copy": "to", "linalg_vector_norm": "norm"}.get(name, name)


def has_bad(tensor: Any) -> bool:
    """Say whether a floating tensor has a value that is not finite."""
    try:
        local = local_part(tensor)
        if local is None or not local.is_floating_point() or not local.numel():
            return False
        return not is_sound(local)
    except Exception:  # a type without arithmetic
        return False


def _has_nan(tensor: Any) -> bool:
    return bool(torch.isnan(tensor).any())


def _judge(op: str, bad: list[Any], came: list[Any]) -> str:
    """Say what kind of event an operation with a bad result is; "" if it only passed it on."""
    if any(_has_nan(t) for t in bad) and not any(_has_nan(t) for t in came):
        return "nan"
    if not came:
        return "mask" if op in FILLING else "inf"
    if op in GROWING and any(bool(torch.isposinf(t).any()) for t in bad):
        return "" if any(bool(torch.isposinf(t).any()) for t in came) else "inf"
    return ""


def _is_additive_mask(tensor: Any) -> bool:
    """Say whether a tensor holds nothing but zeros and minus infinities."""
    return bool(((tensor == 0) | torch.isneginf(tensor)).all())


def _is_choice(tensor: Any) -> bool:
    return not tensor.requires_grad and bool(((tensor == 0) | (tensor == 1)).all())


class _Call:
    """The arguments of an operation, and what those that it writes to held before."""

    def __init__(self, args: Any, keywords: Any, copies: dict[int, Any]) -> None:
        self.args, self.keywords, self.copies = args, keywords, copies

    def inputs(self, is_new: bool) -> list[tuple[Any, Any]]:
        values = [t for v in (*self.args, *self.keywords.values()) for t in _tensors(v)]
        pairs = [(t, self.copies.get(id(t), t)) for t in values]
        return [pair for pair in pairs if pair[0] is pair[1]] if is_new else pairs

    def before(self) -> tuple[list[Any], dict[str, Any]]:
        copies = self.copies
        return (
            [copies.get(id(value), value) for value in self.args],
            {key: copies.get(id(value), value) for key, value in self.keywords.items()},
        )


def storage_of(tensor: Any) -> int:
    """Return a number that stands for the memory of a tensor, shared by its views."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except Exception:  # no storage of its own: sparse and the like
        return id(tensor)


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _written(func: Any, args: Any, keywords: Any) -> Iterator[Any]:
    if not func._schema.is_mutable:
        return
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else keywords.get(argument.name)
            yield from _tensors(value)


def modules_of(frame: FrameType | None) -> list[Any]:
    """Return the modules that are being called in a stack, outermost first."""
    found: list[Any] = []
    for caller in places.frames_below(frame):
        if caller.f_code.co_name in {"_call_impl", "forward"}:
            module = caller.f_locals.get("self")
            if is_module(module) and not (found and found[-1] is module):
                found.append(module)
    return found[::-1]
