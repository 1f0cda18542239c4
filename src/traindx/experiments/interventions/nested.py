"""Tensors inside of what a model or a loader gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

MAX_DEPTH = 3
MAX_ITEMS = 64


def tensors(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested lists, tuples and mappings."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < MAX_DEPTH:
        items: Any = ()
        if isinstance(value, dict) or hasattr(value, "items"):
            items = value.values()
        elif isinstance(value, (list, tuple)):
            items = value
        for _, item in zip(range(MAX_ITEMS), items):
            yield from tensors(item, depth + 1)
