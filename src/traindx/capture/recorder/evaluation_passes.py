"""Forward passes that nothing is learnt from: how many in a row, and in which mode."""

from __future__ import annotations

import weakref
from typing import Any

from torch import nn

MAX_TOLD = 200  # evaluations; what they show, the first ones show
MAX_TOLD_IDLE = 8  # between steps that pass; who acts between steps has thousands of them


class Evaluations:
    """Puts forward passes without a backward pass together into evaluations."""

    def __init__(self) -> None:
        self.is_open = False  # passes are being counted
        self._key: tuple[Any, ...] | None = None
        self._count = 0
        self._first: dict[str, Any] = {}
        self._told = 0

    @property
    def are_wanted(self) -> bool:
        """Tell whether to count passes also between steps that pass."""
        return self._told < MAX_TOLD_IDLE

    def forward(self, key: tuple[Any, ...]) -> bool:
        """Count a pass; tell whether it begins a new run of passes."""
        if key == self._key:
            self._count += 1
            return False
        return True

    def begin(self, key: tuple[Any, ...], first: dict[str, Any]) -> None:
        """Begin a run of passes of one kind."""
        self._key, self._first, self._count = key, first, 1
        self.is_open = True

    def end(self, *, by_backward: bool) -> dict[str, Any] | None:
        """Return the evaluation that ends here, if the passes were one."""
        first, count = self._first, self._count
        self._key, self._first, self._count = None, {}, 0
        self.is_open = False
        if not first or self._told >= MAX_TOLD:
            return None  # passes of training say nothing about themselves
        has_grad = bool(first.get("has_grad"))
        if has_grad and (by_backward or first.get("is_training") or count < 2):
            return None  # a step of training, or a network that sees its input in parts
        self._told += 1
        return {**first, "forwards": count}


class Entrances:
    """The modules that training enters by, and how often each was entered without training."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
        self._looked: dict[int, int] = {}

    def number(self, module: nn.Module) -> int:
        """Return the number of a module by which training is entered."""
        return self._known.setdefault(module, len(self._known))

    def is_worth_a_look(self, module: nn.Module) -> bool:
        """Tell whether to look at what it is given: often at first, and ever more rarely."""
        number = self._known.get(module)
        if number is None:
            return False
        count = self._looked[number] = self._looked.get(number, 0) + 1
        return count & (count - 1) == 0 or count == 3
