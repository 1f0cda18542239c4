"""What two checkpoints of a run have in common."""

from __future__ import annotations

from traindx.analysis.checkpoints import is_comparable, shared_matrices
from traindx.model.run import Architecture, Tensor


def tensor(name: str = "fc.weight", shape: tuple[int, ...] = (8, 8), **figures: float) -> Tensor:
    return Tensor(name, shape, "float32", figures)


def test_only_matrices_of_one_shape_are_shared():
    before = Architecture((tensor(), tensor("fc.bias", (8,)), tensor("head.weight", (2, 8))), "a")
    after = Architecture((tensor(), tensor("fc.bias", (8,)), tensor("head.weight", (3, 8))), "b")
    assert [new.name for _, new in shared_matrices(before, after)] == ["fc.weight"]


def test_checksums_of_as_many_values_can_be_compared():
    one, two = tensor(checksum=1.0, count=64.0), tensor(checksum=2.0, count=64.0)
    assert is_comparable(one, two)
    assert not is_comparable(one, tensor(checksum=2.0, count=32.0))
    assert not is_comparable(one, tensor(count=64.0))
    assert not is_comparable(one, tensor(checksum=2.0, count=64.0, alias=1.0))
