"""What the values of a tensor are like: facts that are cheap to find and tell much of a step."""

from __future__ import annotations

from math import isfinite
from typing import Any

import torch

from .summaries import local_part, shape_of

SIDE = 64  # of a corner that is looked at, in every dimension …
VALUES = 32768  # … and how many values it may have; the first dimensions give way last
DIMENSIONS = 4  # in which a tensor may be constant or sum to one; further ones are heads of heads
NEAR_ONE = 1e-3  # of a sum of half-precision probabilities
COUNTED = 2048  # values among which different ones are counted


def facts(tensor: Any) -> dict[str, Any]:
    """Return the shape and type of a tensor, and what its values are like if they can be read."""
    said = outline(tensor)
    try:
        local = local_part(tensor)
        if local is not None and local.numel() and not local.is_complex():
            with torch.no_grad():
                said.update(_values(local.detach()))
    except Exception:  # quantised, fake or of a class of its own: the shape is what there is
        return said
    return said


def outline(tensor: Any) -> dict[str, Any]:
    """Return what a tensor is without a look at its values."""
    said: dict[str, Any] = {"shape": shape_of(tensor), "dtype": str(tensor.dtype)[6:]}
    if tensor.device.type != "cpu":
        said["device"] = str(tensor.device)
    if tensor.layout is torch.strided and not tensor.is_contiguous():
        said["stride"] = list(tensor.stride())
    return said


def equal_rows(tensor: Any) -> int:
    """Return how many of the first rows equal one before them."""
    local = local_part(tensor)
    if local is None or local.dim() < 2 or min(local.shape) < 1 or local.is_complex():
        return 0
    with torch.no_grad():
        rows = corner(local.detach())
        rows = rows.reshape(rows.shape[0], -1).double()
        sums = (rows * torch.arange(1.0, rows.shape[1] + 1, device=rows.device)).sum(1).tolist()
        found, first = 0, dict[float, int]()
        for number, key in enumerate(sums):
            before = first.setdefault(key, number)
            found += before != number and torch.equal(rows[before], rows[number])
    return found


def gradient_facts(tensor: Any) -> tuple[float, float] | None:
    """Return the largest value without its sign, and the share of zeros."""
    local = local_part(tensor)
    if local is None or not local.numel() or not local.is_floating_point():
        return None
    with torch.no_grad():
        seen = corner(local.detach())
        return float(seen.abs().max()), 1 - int(seen.count_nonzero()) / seen.numel()


def corner(tensor: torch.Tensor) -> torch.Tensor:
    """Return the first values in every dimension, so that rows and columns stay what they are."""
    left = VALUES
    for dim, size in enumerate(tensor.shape):
        kept = min(size, SIDE if tensor.dim() > 1 else VALUES, max(1, left))
        left //= max(1, kept)
        if kept < size:
            tensor = tensor.narrow(dim, 0, kept)
    return tensor


def _values(tensor: torch.Tensor) -> dict[str, Any]:
    seen = corner(tensor)
    values = seen.double() if seen.device.type != "mps" else seen.float()
    low, high = (float(v) for v in torch.aminmax(values))
    if not isfinite(low) or not isfinite(high):
        return _with_bad(values)
    said: dict[str, Any] = {"low": low, "high": high, "mean": float(values.mean())}
    if low <= 0 <= high and (zeros := values.numel() - int(values.count_nonzero())):
        said["zeros"] = zeros / values.numel()
    if not seen.is_floating_point() or _is_whole(values, low, high):
        known = values.reshape(-1)
        said["is_whole"] = True
        said["distinct"] = 1 if low == high else int(torch.unique(known[:COUNTED]).numel())
        said.update(_order(known) if seen.dim() == 1 else {})
    constant = _constant(values, is_one=low == high)
    ones = _ones(values) if low >= 0 and high <= 1 + NEAR_ONE else []
    return {
        **said,
        **({"constant": constant} if constant else {}),
        **({"ones": ones} if ones else {}),
    }


def _with_bad(values: torch.Tensor) -> dict[str, Any]:
    known = values[torch.isfinite(values)]
    said: dict[str, Any] = {"nonfinite": values.numel() - known.numel()}
    if known.numel():
        low, high, mean = torch.stack([known.min(), known.max(), known.mean()]).tolist()
        said.update(low=low, high=high, mean=mean)
        if zeros := known.numel() - int(known.count_nonzero()):
            said["zeros"] = zeros / known.numel()
    return said


def _is_whole(values: torch.Tensor, low: float, high: float) -> bool:
    """Tell whether every value is a whole number; most that are not show it at once."""
    return low.is_integer() and high.is_integer() and torch.equal(values, values.round())


def _order(values: torch.Tensor) -> dict[str, Any]:
    """Tell whether whole numbers are sorted, and whether they are all indices in some order."""
    if values.numel() < 3:
        return {}
    said: dict[str, Any] = {}
    if bool((values[1:] >= values[:-1]).all()):
        said["is_sorted"] = True
    spots = torch.arange(values.numel(), device=values.device, dtype=values.dtype)
    if bool((values.sort().values == spots).all()):
        said["is_permutation"] = True
    return said


def _constant(values: torch.Tensor, *, is_one: bool) -> list[int]:
    """Return the dimensions along which nothing changes; the first two entries tell most."""
    dims = [d for d in range(min(values.dim(), DIMENSIONS)) if values.shape[d] > 1]
    if is_one:
        return dims
    near = [d for d in dims if torch.equal(values.select(d, 0), values.select(d, 1))]
    return [d for d in near if bool((values == values.narrow(d, 0, 1)).all())]


def _ones(values: torch.Tensor) -> list[int]:
    """Return the dimensions over which the values add up to one."""
    dims = [d for d in range(values.dim()) if values.shape[d] > 1][-DIMENSIONS:]
    return [d for d in dims if bool(((values.sum(d) - 1).abs() < NEAR_ONE).all())]
