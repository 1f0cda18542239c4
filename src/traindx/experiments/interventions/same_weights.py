"""Gives every rank the weights of the first before the training begins."""

from __future__ import annotations

import weakref
from datetime import timedelta
from typing import Any

import torch
from torch import nn

from . import forwards
from .change_report import ChangeReport

WAITED_S = 60.0  # for the other ranks to call a model


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Broadcast the weights of a model at its first call with gradients."""
    known: weakref.WeakSet[nn.Module] = weakref.WeakSet()
    number = [0]

    def broadcast(model: nn.Module, args: Any) -> None:
        distributed = torch.distributed
        is_ready = distributed.is_available() and distributed.is_initialized()
        if not torch.is_grad_enabled() or model in known or not is_ready:
            return
        known.add(model)
        if distributed.get_world_size() < 2:
            return
        number[0] += 1
        held = [*model.parameters(), *model.buffers()]
        if any(type(t).__name__ == "DTensor" for t in held):
            report.note("weights that are divided between ranks are left alone")
        elif _agree(number[0], [tuple(t.shape) for t in held]):
            report.count(_broadcast(held))
        else:
            report.note(f"{type(model).__name__} is not the same on every rank; left alone")

    forwards.on_begin(report, broadcast)


def _agree(number: int, shapes: list[Any]) -> bool:
    """Tell whether all ranks are about to broadcast the same; else they would wait for ever."""
    distributed = torch.distributed
    store = distributed.distributed_c10d._get_default_store()
    size, rank = distributed.get_world_size(), distributed.get_rank()
    keys = [f"traindx-weights-{number}-{r}" for r in range(size)]
    store.set(keys[rank], repr(shapes))
    try:
        store.wait(keys, timedelta(seconds=WAITED_S))
    except Exception:  # a rank that has another model, or none
        return False
    return len({bytes(store.get(key)) for key in keys}) == 1


def _broadcast(held: list[torch.Tensor]) -> int:
    changed = 0
    with torch.no_grad():
        for tensor in held:
            whole = tensor.detach().clone()
            torch.distributed.broadcast(whole, 0)
            if not torch.equal(whole, tensor.detach()):
                tensor.copy_(whole)
                changed += 1
    return changed
