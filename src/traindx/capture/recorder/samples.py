"""A step that is looked at closely: gradients and weights before the update, and the change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from .summaries import local_part, spaced

COMPARED = 512  # values of each parameter, before and after the update
SHOWN_MODES = 12


class ParameterSnapshot:
    """What was seen of the parameters just before a step."""

    def __init__(self, named: Sequence[tuple[str, nn.Parameter]]) -> None:
        self.named = named
        self.grad_norms = gradient_norms(named)
        weights = [local_part(p) for _, p in named]
        self.weight_norms = _norms(weights)
        self.before = [None if w is None else spaced(w, COMPARED).clone() for w in weights]

    def after(self) -> dict[str, Any]:
        """Return the columns of the sample, once the step was taken."""
        ratios: list[float | None] = []
        moved: list[bool | None] = []
        changes = self._changes()
        for (_, p), change, before in zip(self.named, changes, self.before):
            if change is None or before is None:
                ratios.append(None)
                moved.append(None)
                continue
            size, norm = change
            ratios.append(size / norm if norm > 0 else None)
            moved.append(True if size != 0.0 else _stood_still(p))
        return {
            "names": [name for name, _ in self.named],
            "grad_norms": self.grad_norms,
            "weight_norms": [0.0 if n is None else n for n in self.weight_norms],
            "update_ratios": ratios,
            "has_moved": moved,
        }

    def _changes(self) -> list[tuple[float, float] | None]:
        """Return how far each parameter went and how large it was, by the values compared."""
        now = [local_part(p) for _, p in self.named]
        pairs = [
            (i, spaced(w, COMPARED), b)
            for i, (w, b) in enumerate(zip(now, self.before))
            if w is not None and b is not None and b.numel()
        ]
        found: list[tuple[float, float] | None] = [None] * len(now)
        if not pairs:
            return found
        sizes = _norms([w - b for _, w, b in pairs])
        norms = _norms([b for _, _, b in pairs])
        for (i, _, _), size, norm in zip(pairs, sizes, norms):
            if size is not None and norm is not None:
                found[i] = (size, norm)
        return found


def gradient_norms(named: Sequence[tuple[str, nn.Parameter]]) -> list[float | None]:
    """Return the norm of each gradient, None where there is none."""
    return _norms([_gradient(p) for _, p in named])


def _stood_still(parameter: nn.Parameter) -> bool | None:
    """A parameter that did not move where its gradient was zero tells nothing."""
    gradient = _gradient(parameter)
    if gradient is None or gradient.shape != parameter.shape:
        return None
    return False if bool(spaced(gradient, COMPARED).any()) else None


def _gradient(parameter: nn.Parameter) -> torch.Tensor | None:
    gradient = parameter.grad
    if gradient is None:
        return None
    if gradient.is_sparse:
        return gradient.detach().coalesce().values()
    return local_part(gradient)


def _norms(tensors: Sequence[torch.Tensor | None]) -> list[float | None]:
    """Return the norms, with one transfer from the device for all of them."""
    real = [
        (i, t.detach())
        for i, t in enumerate(tensors)
        if t is not None and t.numel() and t.is_floating_point()
    ]
    found: list[float | None] = [None if t is None else 0.0 for t in tensors]
    groups: dict[tuple[Any, Any], list[tuple[int, torch.Tensor]]] = {}
    for i, tensor in real:
        groups.setdefault((tensor.device, tensor.dtype), []).append((i, tensor))
    for members in groups.values():
        norms = torch._foreach_norm([t for _, t in members])
        for (i, _), norm in zip(members, torch.stack(list(norms)).double().tolist()):
            found[i] = norm
    return found


def modes(model: nn.Module, parts: Sequence[tuple[str, nn.Module]]) -> dict[str, Any]:
    """Return the mode of a model, and of the parts for which it matters."""
    return {
        "is_training": bool(model.training),
        "evaluating": [name for name, part in parts if not part.training][:SHOWN_MODES],
        "live": [name for name, part in parts if part.training][:SHOWN_MODES],
    }


def are_clear(parameters: Sequence[nn.Parameter]) -> bool:
    """Tell whether no gradient is left in these parameters."""
    for parameter in parameters:
        gradient = _gradient(parameter)
        if gradient is not None and bool(gradient.any()):
            return False
    return True
