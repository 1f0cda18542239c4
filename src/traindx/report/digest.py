"""Metrics and parameters in figures, as every report gives them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx.model.run import Architecture, Series


@dataclass(frozen=True, slots=True)
class Digest:
    """One metric in figures; every place is a step of its axis."""

    name: str
    points: int
    broken: int
    axis: str
    first_step: float
    last_step: float
    last: float
    least: float
    least_at: float
    most: float
    most_at: float


def digest(series: Series) -> Digest:
    """Return a metric in figures."""
    numbers = series.take(series.is_finite)
    nothing = float("nan")
    low = int(np.argmin(numbers.values)) if len(numbers) else -1
    high = int(np.argmax(numbers.values)) if len(numbers) else -1
    return Digest(
        name=series.name,
        points=len(series),
        broken=len(series) - len(numbers),
        axis=series.axis,
        first_step=float(series.steps[0]) if len(series) else nothing,
        last_step=float(series.steps[-1]) if len(series) else nothing,
        last=series.last,
        least=float(numbers.values[low]) if len(numbers) else nothing,
        least_at=float(numbers.steps[low]) if len(numbers) else nothing,
        most=float(numbers.values[high]) if len(numbers) else nothing,
        most_at=float(numbers.steps[high]) if len(numbers) else nothing,
    )


@dataclass(frozen=True, slots=True)
class ParameterBlock:
    """The parameters under one name of a model."""

    name: str
    tensors: int
    size: int


def blocks(architecture: Architecture, depth: int = 2) -> list[ParameterBlock]:
    """Return the parameters of a model by block, in the order of the model."""
    sizes: dict[str, list[int]] = {}
    for tensor in architecture.tensors:
        parts = tensor.name.split(".")
        name = ".".join(parts[: min(depth, max(len(parts) - 1, 1))])
        sizes.setdefault(name, []).append(tensor.size)
    return [ParameterBlock(name, len(each), sum(each)) for name, each in sizes.items()]
