"""How far the targets of a language model lie ahead of the tokens that it is given."""

from __future__ import annotations

from typing import Any

import torch

from .summaries import local_part

LOOKUPS = frozenset({"embedding"})
CHOICES = frozenset({"nll_loss", "nll_loss2d", "gather"})  # with a target for every position
MAX_KEPT = 4  # token tensors of a step
MAX_TOKENS = 65_536  # of one
FURTHEST = 3  # positions
ENOUGH = 16  # targets that are compared
VARIED = 4  # different ones among them
ALIKE = 0.98  # of the targets; the rest may be marked, or replaced


class TokenOrder:
    """Remembers the tokens of a step until the targets are there."""

    def __init__(self) -> None:
        self._tokens: list[torch.Tensor] = []

    def take(self, name: str, args: Any) -> int | None:
        """Remember tokens that are looked up; of targets, return how far they are ahead."""
        if name in LOOKUPS and len(args) > 1 and len(self._tokens) < MAX_KEPT:
            tokens = _whole(args[1])
            if tokens is not None and tokens.dim() == 2:
                self._tokens.append(tokens)
        elif name in CHOICES and self._tokens:
            target = _whole(args[2] if name == "gather" and len(args) > 2 else args[1])
            return None if target is None else self._distance(target)
        return None

    def _distance(self, target: torch.Tensor) -> int | None:
        found = (_distance(tokens, target) for tokens in self._tokens)
        return min((n for n in found if n is not None), default=None)

    def clear(self) -> None:
        self._tokens.clear()


def _whole(tensor: Any) -> torch.Tensor | None:
    local = local_part(tensor) if isinstance(tensor, torch.Tensor) else None
    if local is None or local.is_floating_point() or not 0 < local.numel() <= MAX_TOKENS:
        return None
    return local.detach()


def _distance(tokens: torch.Tensor, target: torch.Tensor) -> int | None:
    """Return by how many positions a target follows its token, where one distance fits."""
    count = len(tokens)
    if target.numel() % count or tokens.device != target.device:
        return None
    rows = target.reshape(count, -1)
    for distance in range(FURTHEST + 1):
        width = min(rows.shape[1], tokens.shape[1] - distance)
        if width <= 0:
            break
        wanted, given = rows[:, :width], tokens[:, distance : distance + width]
        counted = wanted >= 0
        known = wanted[counted]
        if known.numel() < ENOUGH or int(known.unique().numel()) < VARIED:
            return None
        if float((known == given[counted]).double().mean()) >= ALIKE:
            return distance
    return None
