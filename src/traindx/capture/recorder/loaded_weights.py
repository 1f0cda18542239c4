"""Weights that are loaded into a module: how many fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from . import places

SHOWN = 3  # names of each kind
PREFIXES = 3  # parts of a name that may come before it on one side: `module.`, `model.encoder.`
MAX_TOLD = 32  # loads: who keeps the best weights loads often


def loaded(module: torch.nn.Module, given: Any, result: Any) -> dict[str, Any] | None:
    """Return how the names of loaded weights and those of the module fit, if it can be told."""
    missing, unexpected = (
        _names(getattr(result, kind, None)) for kind in ("missing_keys", "unexpected_keys")
    )
    try:
        count = len(given)
    except TypeError:
        return None
    return {
        "module": type(module).__name__,
        "matched": max(0, count - len(unexpected)),
        "missing": len(missing),
        "unexpected": len(unexpected),
        "renamed": _renamed(missing, unexpected),
        "lacks": missing[:SHOWN],
        "brings": unexpected[:SHOWN],
        "place": places.user_place(),
    }


def _names(keys: Any) -> list[str]:
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []


def _renamed(missing: Iterable[str], unexpected: Iterable[str]) -> int:
    """Return how many missing names are there with, or without, something before them."""
    brought = set(unexpected)
    endings = {e for key in brought for e in _endings(key)}
    return sum(key in endings or any(e in brought for e in _endings(key)) for key in missing)


def _endings(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[i:]) for i in range(1, min(PREFIXES, len(parts) - 1) + 1)]
