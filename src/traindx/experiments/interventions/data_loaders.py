"""Data loaders, the batches that they give, and which of them feed the training.

Which loader is the training's is known once a backward pass follows a batch of it. Before the first
one, every loader that is opened with gradients on may be; afterwards those over the same data are.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data import dataloader as loader_module

from . import moments
from .change_report import ChangeReport
from .replacement import replace

SEEN_BEFORE_NOTE = 4  # backward passes without a loader until that is said

_trained: dict[int, Any] = {}  # data sets that are trained on
_sources: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # by the iterator
_for_training: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
_opening: list[Callable[[Any], Any]] = []
_giving: list[Callable[[Any, Any, Callable[[], Any]], Any]] = []
_state: dict[str, Any] = {"is_installed": False, "current": None, "given": 0, "backwards": 0}


def on_open(report: ChangeReport, listener: Callable[[Any], Any]) -> None:
    """Call a listener with each loader of the training before a pass over it begins."""
    _install()
    _opening.append(report.guard(listener))


def on_batch(report: ChangeReport, change: Callable[[Any, Any, Callable[[], Any]], Any]) -> None:
    """Let `change(loader, batch, following)` return the batch that a training loader gives.

    `following()` fetches the next one, and raises `StopIteration` at the end.
    """
    _install()

    def guarded(loader: Any, batch: Any, following: Callable[[], Any]) -> Any:
        if report.failed:
            return batch
        try:
            return change(loader, batch, following)
        except StopIteration:
            raise
        except Exception as error:  # the boundary to the user's program
            report.fail(error)
            return batch

    _giving.append(guarded)


def note_if_unused(report: ChangeReport) -> None:
    """Say so when training goes on without any loader."""
    _install()

    def look(tensors: Any) -> None:
        if _state["backwards"] == SEEN_BEFORE_NOTE and not _state["given"]:
            report.note("the program trains without a DataLoader; its batches are not reached")

    moments.on("backward_ends", report, look)


def current_data() -> int | None:
    """Return what tells apart the data that the last batch came from."""
    return _state["current"] and id(_state["current"][0])


def batches_given() -> int:
    """Return how many batches loaders gave, of whatever data."""
    return int(_state["given"])


def watch() -> None:
    """Begin to notice where batches come from."""
    _install()


def _is_for_training(loader: Any) -> bool:
    if not torch.is_grad_enabled():
        return False
    return not _trained or id(loader.dataset) in _trained


def _install() -> None:
    if _state["is_installed"]:
        return
    _state["is_installed"] = True
    replace(DataLoader, "__iter__", _iter)
    replace(loader_module._BaseDataLoaderIter, "__next__", _next)

    def learn(tensors: Any) -> None:
        _state["backwards"] += 1
        if _state["current"] is not None:
            data = _state["current"][0]
            _trained[id(data)] = data

    moments.on("backward_begins", ChangeReport(), learn)


def _iter(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def begin(loader: Any) -> Any:
        is_ours = _is_for_training(loader) and not moments.is_quiet()
        if is_ours:
            for listener in _opening:
                listener(loader)
        iterator = original(loader)
        _sources[iterator] = loader
        _for_training[iterator] = is_ours
        return iterator

    return begin


def _next(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def next_batch(iterator: Any) -> Any:
        batch = original(iterator)
        loader = _sources.get(iterator)
        if loader is None:
            return batch
        _state["given"] += 1
        _state["current"] = (loader.dataset,)
        if _for_training.get(iterator):
            for change in _giving:
                batch = change(loader, batch, lambda: original(iterator))
        return batch

    return next_batch
