"""The step that is going on: its batch, inputs, losses, and what was done to its gradients."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from .later import Later
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

    def let_go(self) -> None:
        """Forget the numbers of the step; the batch stays until the next one comes."""
        self.losses, self.clip, self.scaled, self.target = Losses(), None, None, None
