"""Standardises the inputs of models: each feature, or each channel, to mean 0 and deviation 1.

The statistics come from the first batches of the training, and are used for every call from then
on. Inputs that are about standard already are left as they are.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from . import forwards
from .change_report import ChangeReport

BATCHES = 20  # that statistics are taken from
FAR = 3.0  # a mean beyond this is not centred
WIDE = 5.0  # a deviation beyond this is not scaled; images in 0…1 have 0.3
NARROW = 0.02  # and below this neither, where it is so for most features
_FEATURES_SECOND = (nn.Conv1d, nn.BatchNorm1d, nn.ConvTranspose1d)


class Statistics:
    """Mean and deviation of each feature of a model's first input."""

    def __init__(self, model: nn.Module, *, is_strict: bool = False) -> None:
        self.is_strict = is_strict  # also what is about standard already
        first = next((m for m in model.modules() if _has_weights(m)), None)
        self.is_second = isinstance(first, _FEATURES_SECOND)
        self.batches = 0
        self.is_off = False
        self.is_watched = False  # for inputs that are given by name
        self.count = 0
        self.mean: Any = None
        self.squares: Any = None

    def axis(self, given: torch.Tensor) -> int:
        """Return the dimension of the features."""
        if given.ndim == 3 and not self.is_second:
            return 2
        return 1

    def add(self, given: torch.Tensor) -> None:
        """Take a batch into account."""
        axis = self.axis(given)
        rows = given.detach().double().movedim(axis, -1).reshape(-1, given.shape[axis])
        number, mean = rows.shape[0], rows.mean(0)
        squares = (rows - mean).square().sum(0)
        if self.mean is None:
            self.mean, self.squares = mean, squares
        else:
            total, shift = self.count + number, mean - self.mean
            self.squares = self.squares + squares + shift**2 * self.count * number / total
            self.mean = self.mean + shift * number / total
        self.count += number
        self.batches += 1
        if self.batches == 1:
            self.is_off = not self.is_strict and self._is_standard()

    def deviation(self) -> torch.Tensor:
        """Return the deviation of each feature, 1 for one that does not vary."""
        deviation = (self.squares / max(1, self.count - 1)).sqrt()
        least = 1e-6 * self.mean.abs().clamp_min(1.0)
        return torch.where(deviation > least, deviation, torch.ones_like(deviation))

    def _is_standard(self) -> bool:
        deviation = self.deviation()
        is_centred = bool((self.mean.abs() <= FAR).all()) and bool((deviation <= WIDE).all())
        return is_centred and float(deviation.median()) >= NARROW

    def standardised(self, given: torch.Tensor) -> torch.Tensor:
        """Return an input with the statistics taken out."""
        shape = [1] * given.ndim
        shape[self.axis(given)] = -1
        mean = self.mean.reshape(shape).to(given.device)
        deviation = self.deviation().reshape(shape).to(given.device)
        return ((given.double() - mean) / deviation).to(given.dtype)


class Inputs:
    """The inputs of each model."""

    def __init__(self, report: ChangeReport, *, is_strict: bool = False) -> None:
        self.report = report
        self.is_strict = is_strict
        self._known: weakref.WeakKeyDictionary[nn.Module, Statistics] = weakref.WeakKeyDictionary()

    def positional(self, model: nn.Module, args: Any) -> Any:
        """Standardise the first input that is given by position."""
        if not isinstance(args, tuple) or hasattr(model, "training_step"):
            return None
        statistics = self._known.setdefault(model, Statistics(model, is_strict=self.is_strict))
        place = next((n for n, a in enumerate(args) if _is_input(a)), None)
        if place is None:
            self._watch(model, statistics)
            return None
        changed = self._changed(statistics, args[place])
        return None if changed is None else (*args[:place], changed, *args[place + 1 :])

    def _watch(self, model: nn.Module, statistics: Statistics) -> None:
        """Look at inputs that are given by name from the next call on."""
        if statistics.is_watched:
            return
        statistics.is_watched = True

        def named(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
            name = next((n for n, a in kwargs.items() if _is_input(a)), None)
            if name is None or any(_is_input(a) for a in args):
                return None
            changed = self._changed(statistics, kwargs[name])
            return None if changed is None else (args, {**kwargs, name: changed})

        model.register_forward_pre_hook(self.report.guard(named), with_kwargs=True)

    def _changed(self, statistics: Statistics, given: torch.Tensor) -> torch.Tensor | None:
        if given.requires_grad:
            if statistics.batches and not statistics.is_off:
                self.report.note("a model is also given what another one made; left alone")
            statistics.is_off = True
        if statistics.is_off:
            return None
        is_known = statistics.mean is not None
        if is_known and statistics.mean.numel() != given.shape[statistics.axis(given)]:
            return None
        if torch.is_grad_enabled() and statistics.batches < BATCHES:
            statistics.add(given)
        if statistics.is_off or statistics.mean is None:
            return None
        self.report.count()
        return statistics.standardised(given)


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Standardise what models are given."""
    is_strict = bool(values.get("strict"))
    forwards.on_begin(report, Inputs(report, is_strict=is_strict).positional)


def _is_input(value: Any) -> bool:
    is_tensor = isinstance(value, torch.Tensor) and value.is_floating_point()
    return is_tensor and value.ndim > 1 and value.shape[0] > 0


def _has_weights(module: nn.Module) -> bool:
    return next(module.parameters(recurse=False), None) is not None
