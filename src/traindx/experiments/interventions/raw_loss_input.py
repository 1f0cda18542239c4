"""Gives a loss what it expects: raw scores where it normalises itself, log-probabilities elsewhere.

What went into a softmax or a sigmoid is remembered with what came out of it. Where that is lost on
the way (a view, a slice), the logarithm of the probabilities stands in: it differs from the scores
by a constant in each row, which the loss does not see.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from .change_report import ChangeReport
from .replacement import change_arguments, leave_scripts_alone, replace

TOLERANCE = 1e-3  # of a sum of probabilities in single precision
ROUGH = 2e-2  # in half precision
_ORIGIN = "_traindx_origin"
_SHAPING = ("View", "UnsafeView", "Squeeze", "Unsqueeze", "ReshapeAlias", "Transpose", "Permute",
            "Select", "Slice", "Index", "Clone", "ToCopy", "Alias", "T", "Expand")  # fmt: skip


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Undo, or make up for, the normalisation before a loss."""
    _remember("softmax", (functional, torch, torch.Tensor))
    _remember("sigmoid", (functional, torch, torch.Tensor))
    report.note_if_idle("losses that are written by hand are not reached")
    changes = LossInputChanges(report)
    change_arguments(functional, "cross_entropy", report, changes.cross_entropy)
    change_arguments(functional, "nll_loss", report, changes.nll_loss)
    change_arguments(functional, "kl_div", report, changes.kl_div)
    change_arguments(functional, "binary_cross_entropy", report, changes.binary)
    name = "binary_cross_entropy_with_logits"
    change_arguments(functional, name, report, changes.binary_with_logits)


class LossInputChanges:
    """What is done to the input of each loss."""

    def __init__(self, report: ChangeReport) -> None:
        self.report = report
        self.is_sigmoid_known = False

    def cross_entropy(self, arguments: dict[str, Any]) -> None:
        """Take the scores instead of their softmax."""
        given = arguments.get("input")
        if not isinstance(given, torch.Tensor) or not given.is_floating_point():
            return
        kind, origin, dim = getattr(given, _ORIGIN, ("", None, None))
        classes = 1 if given.ndim > 1 else 0
        if kind == "softmax" and dim in (classes, classes - given.ndim, None):
            self._use(arguments, origin)
        elif _are_probabilities(given):
            self._use(arguments, _log(given))

    def nll_loss(self, arguments: dict[str, Any]) -> None:
        """Take log-probabilities instead of probabilities or scores."""
        given = arguments.get("input")
        if not isinstance(given, torch.Tensor) or given.ndim < 1 or not given.numel():
            return
        if _are_probabilities(given):
            self._use(arguments, _log(given))
        elif bool((given.detach() > ROUGH).any()) and _classes(given) > 1:
            self._use(arguments, functional.log_softmax(given, 1 if given.ndim > 1 else 0))

    def kl_div(self, arguments: dict[str, Any]) -> None:
        """Take log-probabilities instead of probabilities."""
        given = arguments.get("input")
        if isinstance(given, torch.Tensor) and given.ndim > 0:
            kind, _, _ = getattr(given, _ORIGIN, ("", None, None))
            if kind == "softmax" or _are_probabilities(given.transpose(-1, min(1, given.ndim - 1))):
                self._use(arguments, _log(given))

    def binary(self, arguments: dict[str, Any]) -> None:
        """Take probabilities instead of scores."""
        given = arguments.get("input")
        if isinstance(given, torch.Tensor):
            low, high = given.detach().aminmax() if given.numel() else (0.0, 1.0)
            if float(low) < 0.0 or float(high) > 1.0:
                self._use(arguments, torch.sigmoid(given))

    def binary_with_logits(self, arguments: dict[str, Any]) -> None:
        """Take the scores instead of their sigmoid."""
        given = arguments.get("input")
        if not isinstance(given, torch.Tensor) or not given.numel():
            return
        kind, origin, _ = getattr(given, _ORIGIN, ("", None, None))
        if kind == "sigmoid":
            self.is_sigmoid_known = True
            self._use(arguments, origin)
            return
        low, high = (float(v) for v in given.detach().aminmax())
        is_between = low >= 0.0 and high <= 1.0
        # without gradients nothing tells where it came from but what the training has shown
        is_shown = self.is_sigmoid_known and not given.requires_grad
        if is_between and (_came_from(given, "Sigmoid") or is_shown):
            self.is_sigmoid_known = True
            self._use(arguments, torch.logit(given, eps=torch.finfo(given.dtype).eps))

    def _use(self, arguments: dict[str, Any], value: Any) -> None:
        arguments["input"] = value
        self.report.count()


def _remember(name: str, owners: tuple[Any, ...]) -> None:
    """Let results of a function carry what it was given."""

    def remembering(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(given: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(given, *args, **kwargs)
            is_plain = isinstance(result, torch.Tensor) and result.is_floating_point()
            if is_plain and not torch.compiler.is_compiling() and result is not given:
                dim = kwargs.get("dim", args[0] if args and isinstance(args[0], int) else None)
                if isinstance(given, torch.Tensor) and given.dtype == result.dtype:
                    setattr(result, _ORIGIN, (name, given, dim))
            return result

        leave_scripts_alone(call, original)
        return call

    for owner in owners:
        replace(owner, name, remembering)


def _classes(given: torch.Tensor) -> int:
    return int(given.shape[1] if given.ndim > 1 else given.shape[0])


def _are_probabilities(given: torch.Tensor) -> bool:
    """Tell whether every row is nonnegative and sums to one."""
    if given.ndim < 1 or not given.numel() or _classes(given) < 2:
        return False
    values = given.detach().float()
    if bool((values < 0).any()):
        return False
    tolerance = TOLERANCE if given.dtype in (torch.float32, torch.float64) else ROUGH
    sums = values.sum(1 if given.ndim > 1 else 0)
    return bool(((sums - 1).abs() < tolerance).all())


def _log(probabilities: torch.Tensor) -> torch.Tensor:
    return probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()


def _came_from(tensor: torch.Tensor, name: str) -> bool:
    """Tell whether a tensor is the result of an operation, reshaped at most."""
    node: Any = tensor.grad_fn
    for _ in range(8):
        if node is None:
            return False
        kind = type(node).__name__.split("Backward")[0]
        if kind == name:
            return True
        if kind not in _SHAPING or not node.next_functions:
            return False
        node = node.next_functions[0][0]
    return False
