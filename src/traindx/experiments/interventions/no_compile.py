"""Runs what `torch.compile` was to compile as it is."""

from __future__ import annotations

from typing import Any

import torch

from .change_report import ChangeReport


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Let `torch.compile` give back what it is given."""

    def leave(model: Any = None, **_: Any) -> Any:
        if model is None:  # used as a decorator with options
            return leave
        report.count()
        if isinstance(model, torch.nn.Module):
            object.__setattr__(model, "_orig_mod", model)  # the name that programs unwrap it by
        return model

    def stay(module: torch.nn.Module, *_: Any, **__: Any) -> None:
        report.count()

    torch.compile = leave
    torch.nn.Module.compile = stay
