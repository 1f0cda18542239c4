"""The step that is going on: its batch, inputs, losses, and what was done to its gradients."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from .later import Later
from .places import user_place
from .rows import Losses

MAX_FORWARDS = 8


class Forward:
    """A call of a model, kept until the next step; the model itself may go before that."""

    __slots__ = ("_module", "args", "kwargs", "name")

    def __init__(self, name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        self._module = weakref.ref(module)
        self.name, self.args, self.kwargs = name, args, kwargs

    @property
    def module(self) -> Any:
        """Return the model that was called."""
        return self._module()

    def given(self) -> dict[str, Any]:
        """Return what it was called with, by name or number."""
        return {**{str(i): value for i, value in enumerate(self.args)}, **self.kwargs}


class CurrentStep:
    """What is held of the present step, and let go when it is over."""

    def __init__(self) -> None:
        self.batch: Any = None
        self.inputs: list[Forward] = []
        self.is_applied = False  # a backward pass went through these inputs
        self.rng_state: torch.Tensor | None = None
        self.target: torch.Tensor | None = None  # the classes that the loss was given
        self.losses = Losses()
        self.clip: tuple[Later, float] | None = None
        self.late_clip: dict[str, Any] | None = None  # where gradients were clipped too late
        self.is_clipped = False  # in time
        self.are_asked = False  # gradients came without a backward pass
        self._updated: tuple[Any, int] | None = None  # a parameter as it was before the update
        self.scaled: tuple[int, torch.Tensor, Any] | None = None

    def keep(self, forward: Forward) -> None:
        """Keep what a model was given, and the random state at the first call of the step."""
        if self.is_applied:
            self.inputs.clear()
            self.is_applied = False
        if not self.inputs:
            self.rng_state = torch.get_rng_state()
        if len(self.inputs) < MAX_FORWARDS:
            self.inputs.append(forward)

    def given(self) -> Any:
        """Return what the loader gave, or else what the model was given."""
        if self.batch is not None or not self.inputs:
            return self.batch
        return [*self.inputs[0].args, *self.inputs[0].kwargs.values()]

    def labelled(self) -> Any:
        """Return inputs with their labels: those of the loader, or else those of the loss."""
        if self.batch is not None or not self.inputs or self.target is None:
            return self.batch
        return [*self.inputs[0].args[:1], self.target]

    def unscaled(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss as it was before a gradient scaler multiplied it."""
        if self.scaled is not None and self.scaled[0] == id(loss):
            return self.scaled[1]
        return loss

    def scale(self) -> float | None:
        """Return the factor of the gradient scaler, where it can be read without waiting."""
        scale = getattr(self.scaled[2], "_scale", None) if self.scaled is not None else None
        is_read = isinstance(scale, torch.Tensor) and scale.device.type == "cpu"
        return float(scale) if is_read else None  # type: ignore[arg-type]

    def updates(self, parameters: Sequence[Any]) -> None:
        """Note that an optimizer is about to change these."""
        first = next(iter(parameters), None)
        self._updated = None if first is None else (first, first._version)

    def clips(self, norm: Later, limit: float) -> None:
        """Note that gradients were clipped, and whether these were used up already."""
        self.clip = (norm, limit)
        is_before = not self.losses.values and not self.are_asked
        is_used = not self.losses.is_closure and self._is_updated()
        if not (is_before or is_used):
            self.is_clipped = True
        elif self.late_clip is None:
            self.late_clip = user_place()

    def _is_updated(self) -> bool:
        return self._updated is not None and self._updated[0]._version > self._updated[1]

    def let_go(self) -> None:
        """Forget the numbers of the step; the batch stays until the next one comes."""
        self.losses, self.clip, self.scaled, self.target = Losses(), None, None, None
        self.late_clip = self._updated = None
        self.is_clipped = self.are_asked = False
