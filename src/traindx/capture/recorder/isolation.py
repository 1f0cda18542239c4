"""Runs code of the user's once more and leaves no trace of it."""

from __future__ import annotations

import contextlib
import logging
import random
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

import torch

_state = threading.local()


def is_replaying() -> bool:
    """Say whether this thread is in a replay, so that the recorder's own hooks can look away."""
    return bool(getattr(_state, "depth", 0))


@contextlib.contextmanager
def untouched(objects: Iterable[Any], rng_state: Any) -> Iterator[None]:
    """Set the random state for a replay; afterwards everything is as it was before."""
    with contextlib.ExitStack() as stack:
        _state.depth = getattr(_state, "depth", 0) + 1
        stack.callback(_leave)
        stack.enter_context(_same_random_state(rng_state))
        kept = list(objects)
        stack.enter_context(_same_generators(kept))
        stack.enter_context(_same_attributes(kept))
        stack.enter_context(_same_gradients(kept))
        stack.enter_context(_silence())
        stack.enter_context(_eager())
        yield


def _leave() -> None:
    _state.depth -= 1


@contextlib.contextmanager
def _same_random_state(rng_state: Any) -> Iterator[None]:
    python = random.getstate()
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    numpy_state = numpy.get_state() if numpy is not None else None
    has_cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    cuda = torch.cuda.get_rng_state_all() if has_cuda else None
    cpu = torch.get_rng_state()
    try:
        if isinstance(rng_state, torch.Tensor):
            torch.set_rng_state(rng_state)
        yield
    finally:
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        if numpy is not None:
            numpy.set_state(numpy_state)
        random.setstate(python)


@contextlib.contextmanager
def _same_generators(objects: Iterable[Any]) -> Iterator[None]:
    """Set generators of the user's own back to where they were, those of numpy's by their state."""
    found = {id(value): value for thing in objects for value in _in_reach(thing)}
    torches = [(g, g.get_state()) for g in found.values() if type(g) is torch.Generator]
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    kinds = () if numpy is None else (numpy.Generator,)
    numpys = [
        (g.bit_generator, g.bit_generator.state)
        for g in found.values()
        if issubclass(type(g), kinds)
    ]
    plains = [(g, g.getstate()) for g in found.values() if type(g) is random.Random]
    try:
        yield
    finally:
        for torch_generator, torch_state in torches:
            torch_generator.set_state(torch_state)
        for bits, bits_state in numpys:
            bits.state = bits_state
        for plain, plain_state in plains:
            plain.setstate(plain_state)


def _in_reach(thing: Any) -> list[Any]:
    """Return what an object holds, and the names that the methods of its class can see."""
    methods = (m for m in vars(type(thing)).values() if isinstance(m, FunctionType))
    is_users = not type(thing).__module__.startswith("torch.")
    seen = next((m.__globals__ for m in methods), {}) if is_users else {}
    return [*vars(thing).values(), *seen.values()]


@contextlib.contextmanager
def _same_attributes(objects: Iterable[Any]) -> Iterator[None]:
    """Swap buffers for copies, for a change in place would break the user's own backward pass."""
    saved = []
    kept = {id(thing): thing for thing in objects}
    try:
        for thing in kept.values():
            held = thing.__dict__
            inner = {
                name: dict(held[name])
                for name in ("_buffers", "_parameters", "_modules")
                if isinstance(held.get(name), dict)
            }
            saved.append((held, dict(held), inner))
            for name, buffer in inner.get("_buffers", {}).items():
                if isinstance(buffer, torch.Tensor):
                    held["_buffers"][name] = buffer.detach().clone()
        yield
    finally:
        for held, before, inner in saved:
            _restore(held, before)
            for name, entries in inner.items():
                _restore(held[name], entries)


@contextlib.contextmanager
def _same_gradients(objects: Iterable[Any]) -> Iterator[None]:
    """Keep `.grad` as it is, and the user's hooks on it asleep."""
    tensors = {
        id(tensor): tensor
        for thing in objects
        for tensor in (thing.__dict__.get("_parameters") or {}).values()
        if isinstance(tensor, torch.Tensor)
    }
    grads = [(tensor, tensor.grad) for tensor in tensors.values()]
    hooks = [t._backward_hooks for t in tensors.values() if getattr(t, "_backward_hooks", None)]
    saved = [(held, dict(held)) for held in hooks]
    try:
        for held in hooks:
            held.clear()
        yield
    finally:
        for held, entries in saved:
            held.clear()
            held.update(entries)
        for tensor, grad in grads:
            if tensor.grad is not grad:
                tensor.grad = grad


def _restore(held: dict[str, Any], before: dict[str, Any]) -> None:
    for name in [name for name in held if name not in before]:
        del held[name]
    for name, value in before.items():
        if held.get(name, held) is not value:
            held[name] = value


class _Mute:
    """A stream that drops what one thread writes, and passes on what others do."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def write(self, text: Any) -> Any:
        if threading.get_ident() == self._thread:
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    level = logging.root.manager.disable
    out, err = sys.stdout, sys.stderr
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            logging.disable(logging.CRITICAL)
            sys.stdout, sys.stderr = _Mute(out), _Mute(err)
            yield
        finally:
            sys.stdout, sys.stderr = out, err
            logging.root.manager.disable = level


@contextlib.contextmanager
def _eager() -> Iterator[None]:
    """Run compiled modules uncompiled: a fused kernel cannot be looked into."""
    stance = getattr(torch.compiler, "set_stance", None)
    if stance is None or "torch._dynamo" not in sys.modules:
        yield
        return
    with stance("force_eager"):
        yield
