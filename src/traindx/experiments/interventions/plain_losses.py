"""Losses and scores in their plain form: no smoothing, no weights, the mean over all examples."""

from __future__ import annotations

from typing import Any

import torch

IGNORED = -100

CLASSES, BINARY, VALUES = "classes", "binary", "values"

# what each loss of torch compares, by its name in torch.nn.functional
KINDS = {
    "cross_entropy": CLASSES,
    "nll_loss": CLASSES,
    "binary_cross_entropy_with_logits": BINARY,
    "binary_cross_entropy": BINARY,
    "mse_loss": VALUES,
    "l1_loss": VALUES,
    "smooth_l1_loss": VALUES,
    "huber_loss": VALUES,
}
PROBABILITIES = frozenset({"binary_cross_entropy"})


class Measured:
    """A loss and a score over a number of examples."""

    def __init__(self) -> None:
        self.loss = 0.0
        self.hits = 0.0
        self.count = 0
        self.has_score = False

    def add(self, loss: float, hits: float | None, count: int) -> None:
        """Take a batch into account, given by its mean loss."""
        self.loss += loss * count
        self.count += count
        if hits is not None:
            self.has_score = True
            self.hits += hits

    def told(self) -> dict[str, Any]:
        """Return the means."""
        count = max(1, self.count)
        return {
            "loss": self.loss / count,
            "score": self.hits / count if self.has_score else None,
            "count": self.count,
        }


def measure(
    kind: str, given: torch.Tensor, target: torch.Tensor, *, is_share: bool = False
) -> tuple[float, float | None, int] | None:
    """Return the mean loss, the number of hits, and the number of examples; None if unknown."""
    with torch.no_grad():
        given = given.detach().float()
        if kind == CLASSES:
            return _classes(given, target)
        if given.numel() != target.numel():
            return None
        target = target.detach().float().reshape(given.shape)
        if kind == BINARY:
            return _binary(given, target, is_share=is_share)
        return float((given - target).square().mean()), None, given.numel()


def _classes(given: torch.Tensor, target: torch.Tensor) -> tuple[float, float, int] | None:
    if given.ndim < 2:
        return None
    scores = given.movedim(1, -1).reshape(-1, given.shape[1])
    if target.is_floating_point():
        if target.shape != given.shape:
            return None
        target = target.movedim(1, -1).reshape(scores.shape).argmax(1)
    labels = target.reshape(-1).long()
    if len(labels) != len(scores):
        return None
    kept = labels != IGNORED
    scores, labels = scores[kept], labels[kept]
    if not len(labels) or int(labels.min()) < 0 or int(labels.max()) >= scores.shape[1]:
        return None
    logs = torch.log_softmax(scores, 1)  # of log-probabilities: themselves
    losses = -logs.gather(1, labels[:, None])
    return float(losses.mean()), float((scores.argmax(1) == labels).sum()), len(labels)


def _binary(
    given: torch.Tensor, target: torch.Tensor, *, is_share: bool
) -> tuple[float, float, int]:
    if is_share:
        given = torch.logit(given.clamp(1e-6, 1 - 1e-6))
    target = (target > 0.5).float()
    losses = given.clamp_min(0) - given * target + torch.log1p((-given.abs()).exp())
    hits = ((given > 0) == (target > 0)).sum()
    return float(losses.mean()), float(hits), given.numel()
