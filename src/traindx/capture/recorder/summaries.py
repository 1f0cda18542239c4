"""What is known of a tensor without keeping it."""

from __future__ import annotations

from typing import Any

import torch

LOOKED_AT = 65536  # values of a large tensor, evenly spaced
MAX_DISTINCT = 1024


def summarise(tensor: torch.Tensor, name: str = "", *, limit: int = LOOKED_AT) -> dict[str, Any]:
    """Return the shape, the type, and where the values can be read, their range."""
    said: dict[str, Any] = {
        "name": name,
        "shape": shape_of(tensor),
        "dtype": str(tensor.dtype).replace("torch.", ""),
        "device": str(tensor.device),
    }
    try:
        said.update(_numbers(tensor, limit))
    except Exception:  # sparse, nested, fake, quantised: the shape is what there is
        return said
    return said


def shape_of(tensor: Any) -> list[int]:
    """Return the shape of a tensor, or an empty one where it has none (nested tensors)."""
    try:
        return [int(size) for size in tensor.shape]
    except Exception:  # of a subclass anything may be raised
        return []


def _numbers(tensor: torch.Tensor, limit: int) -> dict[str, Any]:
    local = local_part(tensor)
    if local is None or local.numel() == 0 or local.is_complex():
        return {}
    with torch.no_grad():
        values = spaced(local, limit)
        if not values.is_floating_point():
            values = values.double()
        is_finite = torch.isfinite(values)
        bad = int((~is_finite).sum())
        if bad == 0 and not is_sound(local):
            bad = int((~torch.isfinite(local)).sum())  # between the values that were looked at
        finite = values[is_finite].double() if bad else values.double()
        if finite.numel() == 0:
            return {"nonfinite": bad}
        spread = float(finite.std(unbiased=False))
        return {
            "low": float(finite.min()),
            "high": float(finite.max()),
            "mean": float(finite.mean()),
            "std": spread,
            "nonfinite": bad,
            "distinct": _distinct(finite),
        }


def _distinct(values: torch.Tensor) -> int:
    return int(torch.unique(values[:MAX_DISTINCT]).numel())


def is_sound(tensor: torch.Tensor) -> bool:
    """Tell whether all values are finite, by one sum: cheaper than a mask of every value."""
    if not tensor.is_floating_point():
        return True
    total = tensor.detach().sum(dtype=torch.float32 if tensor.device.type == "mps" else None)
    if bool(torch.isfinite(total)):
        return True
    return bool(torch.isfinite(tensor).all())  # a sum may overflow although no value did


def spaced(tensor: torch.Tensor, limit: int) -> torch.Tensor:
    """Return at most that many values, evenly spaced, without copying the tensor."""
    flat = tensor.detach()
    flat = flat.reshape(-1) if flat.is_contiguous() else flat.flatten()
    stride = -(-flat.numel() // limit)
    return flat[::stride] if stride > 1 else flat


def local_part(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return what this process holds of a tensor, and None if its values are out of reach."""
    kind = type(tensor).__name__
    if kind == "DTensor":
        return tensor.to_local()  # type: ignore[attr-defined,no-any-return,unused-ignore]
    if kind in ("FakeTensor", "FunctionalTensor") or tensor.is_meta or tensor.is_sparse:
        return None
    if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized:
        return None
    try:
        storage = tensor.untyped_storage()
    except Exception:  # a tensor inside vmap or grad of torch.func
        return None
    if tensor.numel() and storage.nbytes() < tensor.element_size():
        return None  # a sharded parameter whose memory was given back
    return tensor
