"""The places where the recorder listens, and their removal.

Public global hooks where torch has them; else a function of torch is replaced by one that calls it
and tells the session before and after. A listener that fails turns the session off, never the call.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling
from torch.optim import optimizer as optimizer_module
from torch.utils.data import DataLoader
from torch.utils.data import dataloader as loader_module

from .module_calls import listen
from .skipped_steps import SkippedSteps

if TYPE_CHECKING:
    from .session import Session

MAX_CHAIN = 50  # errors, each the cause of the next


class Hooks:
    """Everything that was installed, so that it can be taken away again."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._undo: list[Callable[[], Any]] = []
        self._listening: list[Callable[[], Any]] = []

    def install(self) -> None:
        """Begin to listen."""
        session = self.session
        before = optimizer_module.register_optimizer_step_pre_hook(_step_begins(session))
        after = optimizer_module.register_optimizer_step_post_hook(_step_ends(session))
        self._undo += [before.remove, after.remove]
        self._replace(torch.autograd, "backward", _backward(session))
        self._replace(torch.autograd, "grad", _grad(session))
        self._replace(loader_module._BaseDataLoaderIter, "__next__", _next(session))
        self._replace(DataLoader, "__iter__", _iter(session))
        self._replace(torch.nn.Module, "load_state_dict", _load(session))
        self._replace(torch.amp.GradScaler, "scale", _scale(session))
        clip = functools.lru_cache(None)(_clip(session))  # one function under two names stays one
        for owner in (torch.nn.utils.clip_grad, torch.nn.utils):
            self._replace(owner, "clip_grad_norm_", clip)
        self._replace(sys, "excepthook", _excepthook(session))
        self._replace(threading, "excepthook", _thread_excepthook(session))
        os.register_at_fork(after_in_child=session.forked)
        atexit.register(session.finish)
        self._undo.append(lambda: atexit.unregister(session.finish))

    def on_model(self, model: torch.nn.Module) -> None:
        """Listen to the calls of a model, or of its parts where it is never called as a whole."""
        parts = [m for m in model.children() if _has_parameters(m)]
        is_called_inside = hasattr(model, "training_step")  # Lightning
        for module in parts if is_called_inside and parts else [model]:
            if getattr(module, "_compiled_call_impl", None) is None:
                self._on_module(module)

    def _on_module(self, module: torch.nn.Module) -> None:
        session, name = self.session, type(module).__name__
        passing = SkippedSteps(session)

        def called(module: torch.nn.Module, args: Any, kwargs: Any) -> None:
            if is_compiling():
                return
            if session.idle and passing.forward_begins(module, name, args, kwargs):
                return
            session.forward_begins(module, name, args, kwargs)

        self._listening.append(listen(module, called))

    def leave_models(self) -> None:
        """Stop listening to the models that are known."""
        while self._listening:
            self._listening.pop()()

    def remove(self) -> None:
        """Stop listening, and leave everything as it was found."""
        self.leave_models()
        while self._undo:
            self._undo.pop()()

    def _replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = getattr(owner, name, None)
        if original is None:
            return
        ours = wrap(original)
        setattr(owner, name, ours)

        def restore() -> None:
            if getattr(owner, name, None) is ours:  # somebody may have wrapped it again
                setattr(owner, name, original)

        self._undo.append(restore)


def _has_parameters(module: torch.nn.Module) -> bool:
    return next(torch.nn.Module.parameters(module), None) is not None


def _step_begins(session: Session) -> Callable[..., None]:
    passing = SkippedSteps(session)

    def begins(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if is_compiling() or session.is_blind:
            return
        if not (session.idle and passing.step_begins(optimizer)):
            session.step_begins(optimizer)

    return begins


def _step_ends(session: Session) -> Callable[..., None]:
    passing = SkippedSteps(session)

    def ends(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if session.is_blind:
            is_done = passing.blind_step_ends(optimizer)
        else:
            is_done = session.idle > 0 and passing.step_ends()
        if not is_done:
            session.step_ends(optimizer)

    return ends


def _backward(session: Session) -> Callable[[Any], Any]:
    passing = SkippedSteps(session)

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
            if (
                is_compiling()
                or session.is_blind
                or (session.idle and passing.backward_begins(tensors))
            ):
                original(tensors, *args, **kwargs)
                return
            is_ours = session.backward_begins(tensors)
            try:
                original(tensors, *args, **kwargs)
            finally:
                if is_ours:
                    session.backward_ends()

        return backward

    return wrap


def _grad(session: Session) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            found = original(outputs, inputs, *args, **kwargs)
            if not session.idle and not is_compiling():
                session.gradients_asked(outputs, inputs)
            return found

        return grad

    return wrap


def _next(session: Session) -> Callable[[Any], Any]:
    passing = SkippedSteps(session)

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def next_batch(iterator: Any) -> Any:
            if session.captures.is_busy:
                session.fetch_begins()
            began = 0.0 if session.idle else perf_counter()
            try:
                batch = original(iterator)
            except StopIteration:
                session.loader_ends(iterator)
                raise
            if not (session.idle and passing.batch_arrives(iterator, batch)):
                waited_s = perf_counter() - began if began else 0.0
                session.batch_arrives(iterator, batch, waited_s)
            return batch

        return next_batch

    return wrap


def _iter(session: Session) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def begin(loader: Any) -> Any:
            if session.captures.is_busy:
                session.fetch_begins()
            iterator = original(loader)
            session.loader_begins(loader, iterator)
            return iterator

        return begin

    return wrap


def _load(session: Session) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def load_state_dict(module: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(module, state_dict, *args, **kwargs)
            if not is_compiling():
                session.weights_loaded(module, state_dict, result)
            return result

        return load_state_dict

    return wrap


def _scale(session: Session) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = original(scaler, outputs)
            if not is_compiling():
                session.loss_scaled(scaler, outputs, scaled)
            return scaled

        return scale

    return wrap


def _clip(session: Session) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def clip_grad_norm_(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            norm = original(parameters, max_norm, *args, **kwargs)
            if not is_compiling() and not session.idle:
                session.gradients_clipped(norm, max_norm)
            return norm

        return clip_grad_norm_

    return wrap


def _excepthook(session: Session) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        def excepthook(kind: Any, error: Any, traceback: Any) -> None:
            session.exception_ends(kind, error, traceback, "")
            _clear(error)
            original(kind, error, _without_ours(traceback))

        return excepthook

    return wrap


def _clear(error: BaseException | None) -> None:
    """Take our frames out of an error, and out of those that led to it."""
    for _ in range(MAX_CHAIN):
        if error is None:
            return
        shown = _without_ours(error.__traceback__)
        if shown is not error.__traceback__:
            error.__traceback__ = shown
        error = error.__cause__ or error.__context__


def _without_ours(traceback: Any) -> Any:
    """Return a traceback as it would be if nobody had listened."""
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    kept = [e for e in entries if e.tb_frame.f_code.co_filename != __file__]
    if len(kept) == len(entries):
        return entries[0] if entries else None
    rebuilt = None
    for entry in reversed(kept):
        rebuilt = TracebackType(rebuilt, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rebuilt


def _thread_excepthook(session: Session) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        def excepthook(args: Any) -> None:
            name = getattr(args.thread, "name", "") or "a thread"
            session.exception_ends(args.exc_type, args.exc_value, args.exc_traceback, name)
            _clear(args.exc_value)
            shown = (args.exc_type, args.exc_value, _without_ours(args.exc_traceback), args.thread)
            original(threading.ExceptHookArgs(shown))

        return excepthook

    return wrap
