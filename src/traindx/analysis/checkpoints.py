"""What two checkpoints of a run have in common, and what changed between them."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.model.run import Architecture, Tensor


def shared_matrices(before: Architecture, after: Architecture) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the weight matrices that both have in one shape: a bias may stay where it is."""
    known = {t.name: t for t in before.tensors}
    for new in after.tensors:
        old = known.get(new.name)
        is_float = new.dtype.startswith(("float", "bfloat"))
        if old is not None and is_float and len(new.shape) > 1 and old.shape == new.shape:
            yield old, new


def is_comparable(old: Tensor, new: Tensor) -> bool:
    """Tell whether the checksums of two states of a tensor can be compared."""
    is_alias = bool(new.statistics.get("alias")) or old.dtype != new.dtype
    counts = [t.statistics.get("count") for t in (old, new)]
    has_sums = all("checksum" in t.statistics for t in (old, new))
    return has_sums and not is_alias and counts[0] == counts[1]
