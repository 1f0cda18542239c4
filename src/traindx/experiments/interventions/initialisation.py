"""Gives the weights the values that torch gives new layers, before the first step."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from . import forwards, moments
from .change_report import ChangeReport


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Initialise each model anew at its first call with gradients."""
    seed = int(values.get("seed", 0))
    known: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    def initialise(model: nn.Module, args: Any) -> None:
        if model in known or not torch.is_grad_enabled():
            return
        known.add(model)
        if moments.steps:
            report.note(f"{type(model).__name__} came after the first step; left alone")
            return
        if not any(p.requires_grad for p in model.parameters()):
            return  # a teacher, or a measure
        report.count(_reset(model, seed))
        covered = {id(p) for m in _layers(model) for p in m.parameters(recurse=False)}
        rest = [n for n, p in model.named_parameters() if id(p) not in covered]
        if rest:
            report.note(f"not initialised anew: {', '.join(rest[:5])}")

    forwards.on_begin(report, initialise)


def _layers(model: nn.Module) -> list[nn.Module]:
    return [m for m in model.modules() if callable(getattr(m, "reset_parameters", None))]


def _reset(model: nn.Module, seed: int) -> int:
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    layers = _layers(model)
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        torch.default_generator.manual_seed(seed)  # the same on every rank
        for layer in layers:
            layer.reset_parameters()
    return len(layers)
