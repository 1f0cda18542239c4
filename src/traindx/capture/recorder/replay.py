"""Finds where the first value that is no number came from, by replaying the step once."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch

from . import lossgraph
from .caught import is_module, summary_of, unwrap
from .frameworks import FrameworkStep, framework_step
from .gradient_origin import backtrace
from .incident_files import Flat
from .isolation import is_replaying, untouched
from .loss_slice import slice_step
from .replay_mode import HasEffects, NonFiniteEvent, ReplayTimeout, Watcher, has_bad, storage_of

__all__ = ["is_replaying", "locate"]

TIME_S = 30.0
_SHARDED = ("FSDP", "FullyShardedDataParallel", "DeepSpeedEngine")


def locate(
    loss: Any,
    *,
    seen_in: str,
    batch: Any,
    forwards: list[Any],
    rng_state: Any,
    frame: FrameType | None,
) -> dict[str, Any]:
    """Say where a non-finite loss or gradient came from, as the fields of a record."""
    told: dict[str, Any] = {
        "seen_in": seen_in,
        "phase": "",
        "op": "",
        "module": "",
        "module_type": "",
        "parameter": "",
        "place": None,
        "inputs": [],
        "is_exact": False,
        "why": "",
    }
    try:
        search = _Search(loss, seen_in, batch, forwards, rng_state, frame)
        told.update(search.result(sys._getframe(1)))
    except (Exception, ReplayTimeout, HasEffects):  # the training goes on without an answer
        pass
    return told


class _Search:
    """One search, way by way, until one gives the same outcome as the user's step did."""

    def __init__(
        self, loss: Any, seen_in: str, batch: Any, forwards: list[Any], rng: Any, frame: Any
    ) -> None:
        self.loss, self.seen_in, self.batch, self.frame = loss, seen_in, batch, frame
        self.forwards, self.rng_state = list(forwards), rng
        self.roots = [(str(f.name), unwrap(f.module)) for f in forwards]
        self.deadline = time.monotonic() + TIME_S
        self.fallback: dict[str, Any] = {}  # true, but there may be more to say

    def result(self, stack: FrameType) -> dict[str, Any]:
        if not any(_is_sharded(forward.module) for forward in self.forwards):
            for way in self._ways(stack):
                found = self._attempt(way)
                if found:
                    return found
        return self.fallback or self._by_rules() or self._by_graph()

    def _ways(self, stack: FrameType) -> Iterator[Callable[[], dict[str, Any]]]:
        if self.frame is not None:
            yield lambda: self._replay(self._sliced(is_wide=False))
            yield lambda: self._replay(self._sliced(is_wide=True))
        yield lambda: self._replay(framework_step(stack, self.batch))
        if self.seen_in == "loss" and self.forwards:
            yield lambda: self._replay(self._forward_calls())

    def _attempt(self, way: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            return way()
        except ReplayTimeout:
            raise
        except (Exception, HasEffects):  # this way is not open; there may be another
            return {}

    # ------------------------------------------------------------------------------------- ways

    def _sliced(self, *, is_wide: bool) -> FrameworkStep:
        is_after = self.seen_in == "gradient"
        cut = slice_step(self.frame, batch=self.batch, is_wide=is_wide, is_after=is_after)
        modules = [value for value in cut.names.values() if is_module(value)]
        return FrameworkStep(cut.run, [*cut.used, *modules], is_wide=is_wide)

    def _forward_calls(self) -> FrameworkStep:
        def call() -> list[Any]:
            return [unwrap(f.module)(*f.args, **f.kwargs) for f in self.forwards]

        return FrameworkStep(call, [])

    def _replay(self, step: FrameworkStep | None) -> dict[str, Any]:
        if step is None:
            return {}
        objects = list(_objects([*(m for _, m in self.roots), *step.objects]))
        if any(_is_sharded(thing) for thing in objects):
            return {}
        self._name_roots(objects)
        called = [*(forward.module for forward in self.forwards), *objects]
        with untouched(objects, self.rng_state), _directly(called), step.context():
            if self.seen_in == "gradient":
                return self._gradient(step, objects)
            return self._forward(step, objects)

    def _name_roots(self, objects: list[Any]) -> None:
        if not self.roots:
            inner = {id(c) for o in objects if is_module(o) for c in o.children()}
            self.roots = [
                ("", o)
                for o in objects
                if is_module(o) and id(o) not in inner and next(o.parameters(), None) is not None
            ]

    def _forward(self, step: FrameworkStep, objects: list[Any]) -> dict[str, Any]:
        own = [b for o in objects if is_module(o) for b in o.buffers(recurse=False)]
        with Watcher(self.deadline, own=own) as watcher, torch.enable_grad():
            outcome = step.run()
        bad = [tensor for tensor in _all_tensors(outcome) if has_bad(tensor)]
        if not bad or not watcher.has_made(bad[0]):
            return {}
        event = _culprit(watcher.behind(bad[0]))
        if event is None:
            return {}
        if event.op:
            return self._of_operation(event)
        return self._of_source(event, is_last=step.is_wide)

    def _gradient(self, step: FrameworkStep, objects: list[Any]) -> dict[str, Any]:
        own = [b for o in objects if is_module(o) for b in o.buffers(recurse=False)]
        parameters = {
            id(p): p for o in objects if is_module(o) for p in o.parameters(recurse=False)
        }
        with Watcher(self.deadline, is_looking=False, own=own):
            culprit, is_bad, trail = backtrace(step.run, list(parameters.values()))
        if not is_bad and _has_other_ranks():
            self.fallback = {
                "why": "the gradient of this rank alone is finite: see the other ranks"
            }
        if culprit is None or not is_bad:
            return {}
        module = trail.module_of(culprit.order)
        return {
            "phase": "backward",
            "op": culprit.op,
            **self._naming([module] if module is not None else []),
            "parameter": self._first_bad_gradient(),
            "place": culprit.place,
            "inputs": culprit.inputs,
            "is_exact": True,
            "why": culprit.why,
        }

    # --------------------------------------------------------------------------------- telling

    def _names(self) -> dict[int, tuple[str, str]]:
        names: dict[int, tuple[str, str]] = {}
        for _, root in self.roots:
            for name, module in root.named_modules():
                names.setdefault(id(module), (name, type(module).__name__))
        return names

    def _naming(self, stack: list[Any]) -> dict[str, str]:
        names = self._names()
        for module in reversed(stack):
            if id(module) in names:
                name, kind = names[id(module)]
                return {"module": name, "module_type": kind}
        return {"module": "", "module_type": type(stack[-1]).__name__ if stack else ""}

    def _of_operation(self, event: NonFiniteEvent) -> dict[str, Any]:
        known = self._names()
        is_inside = any(id(module) in known for module in event.stack)
        is_before = bool(self.fallback)  # the model was given what was bad already
        return {
            "phase": "forward" if is_inside else "data" if is_before else "loss",
            "op": event.op,
            **self._naming(event.stack),
            "place": event.place,
            "inputs": event.inputs,
            "is_exact": True,
            "why": event.why or "its inputs are finite, its result is not",
        }

    def _of_source(self, event: NonFiniteEvent, *, is_last: bool) -> dict[str, Any]:
        key = storage_of(event.tensor)
        for name, parameter in self._parameters():
            if storage_of(parameter) == key:
                return {**_weights(name, parameter), "is_exact": True}
        is_in_batch = key in map(storage_of, Flat(self.batch).tensors.values())
        for name, tensor in self._data():
            if storage_of(tensor) == key:
                self.fallback = {**_data(name, tensor), "is_exact": True}
                return self.fallback if is_last or is_in_batch else {}
        if event.tensor.grad_fn is None:
            self.fallback = {**_data("", event.tensor), "is_exact": True}
        return self.fallback if is_last else {}  # else: computed before what was replayed

    def _parameters(self) -> Iterator[tuple[str, Any]]:
        for _, root in self.roots:
            yield from root.named_parameters()
            yield from root.named_buffers()

    def _data(self) -> Iterator[tuple[str, Any]]:
        yield from Flat(self.batch).tensors.items()
        for forward in self.forwards:
            yield from Flat((forward.args, forward.kwargs)).tensors.items()

    def _first_bad_gradient(self) -> str:
        for _, root in self.roots:
            for name, parameter in root.named_parameters():
                if parameter.grad is not None and has_bad(parameter.grad):
                    return str(name)
        return ""

    # ----------------------------------------------------------------------- without a replay

    def _by_rules(self) -> dict[str, Any]:
        for name, tensor in self._data():
            if has_bad(tensor) and not _may_be_mask(tensor):
                return _data(name, tensor)
        for name, parameter in self._parameters():
            if has_bad(parameter) and not _may_be_mask(parameter):
                return _weights(name, parameter)
        return {}

    def _by_graph(self) -> dict[str, Any]:
        if self.seen_in != "loss" or not isinstance(self.loss, torch.Tensor):
            return {}
        return lossgraph.locate(self.loss, self.frame)


def _culprit(events: list[NonFiniteEvent]) -> NonFiniteEvent | None:
    """Return the event that explains a bad value: the first, unless it was a mask on purpose."""
    real = [event for event in events if event.kind != "mask"]
    while real and real[0].is_down and any("all is masked" in event.why for event in real[1:]):
        real = real[1:]  # a mask that was made earlier, and covers a whole row
    return next(iter(real or events), None)


def _may_be_mask(tensor: Any) -> bool:
    is_down = torch.isneginf(tensor)
    return bool((is_down | torch.isfinite(tensor)).all())


def _weights(name: str, parameter: Any) -> dict[str, Any]:
    return {
        "phase": "weights",
        "parameter": name,
        "inputs": [summary_of(parameter, name)],
        "why": f"{name} was already not finite when the step began",
    }


def _data(name: str, tensor: Any) -> dict[str, Any]:
    bad = ~torch.isfinite(tensor.detach())
    index = [int(i) for i in bad.nonzero()[0]]
    label = f"tensor {name} of the batch" if name not in {"", "tensor"} else "the batch"
    why = f"{label} has {int(bad.sum())} values that are not finite"
    if index:
        rows = int(bad.reshape(bad.shape[0], -1).any(1).sum())
        why += f", the first at {index} (row {index[0]}; {rows} of {bad.shape[0]} rows have one)"
    return {"phase": "data", "inputs": [summary_of(tensor, name)], "why": why}


# ------------------------------------------------------------------------------------------ safety


def _is_sharded(thing: Any) -> bool:
    """Say whether a module's forward pass talks to other ranks in a way that cannot be left out."""
    if not is_module(thing):
        return False
    if any(kind.__name__.startswith(_SHARDED) for kind in type(thing).__mro__):
        return True
    return any(type(p).__name__ == "DTensor" for p in thing.parameters())


def _has_other_ranks() -> bool:
    distributed = torch.distributed
    return bool(
        distributed.is_available()
        and distributed.is_initialized()
        and distributed.get_world_size() > 1
    )


def _objects(values: list[Any]) -> Iterator[Any]:
    """Yield the modules that values hold, and the user's own objects around them."""
    seen: set[int] = set()
    for value in values:
        for thing in _held(value):
            for part in thing.modules() if is_module(thing) else [thing]:
                if id(part) not in seen and type(getattr(part, "__dict__", None)) is dict:
                    seen.add(id(part))
                    yield part


def _held(value: Any) -> list[Any]:
    if is_module(value):
        return [value]
    if type(value) in (list, tuple, dict):
        inner = value.values() if type(value) is dict else value
        return [item for item in inner if is_module(item)]
    held = getattr(value, "__dict__", None)
    if type(held) is not dict or isinstance(value, type) or callable(value):
        return []
    return [value, *(item for item in held.values() if is_module(item))]


@contextlib.contextmanager
def _directly(modules: list[Any]) -> Iterator[None]:
    """Let a data-parallel wrapper call its module as it is: no rank is waited for."""
    wrappers = [
        module
        for module in modules
        if is_module(module)
        and type(module).__name__ in {"DistributedDataParallel", "DataParallel"}
    ]
    try:
        for wrapper in wrappers:
            wrapper.__dict__["forward"] = wrapper.module.__call__
        yield
    finally:
        for wrapper in wrappers:
            wrapper.__dict__.pop("forward", None)


def _all_tensors(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else list(Flat(value).tensors.values())
