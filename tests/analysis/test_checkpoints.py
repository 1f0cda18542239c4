"""What two checkpoints of a run have in common."""

import pytest

from traindx.analysis.checkpoints import (
    block_of,
    causes_of_unchanged,
    cite_broken,
    constant_matrices,
    grown_matrices,
    is_broken,
    is_comparable,
    is_dense_matrix,
    last_sound,
    moved_and_still,
    shared_matrices,
    vocabulary_tables,
)
from traindx.examples import with_checkpoints
from traindx.model.findings import Strength
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


def test_matrices_that_outgrow_a_usual_training():
    def saved(norm: float) -> Architecture:
        return Architecture((tensor(norm=norm),), "a")

    ((_, old, new),) = grown_matrices(saved(4.0), saved(4e4))
    assert (old, new) == (4.0, 4e4)
    assert not list(grown_matrices(saved(4.0), saved(40.0)))
    assert not list(grown_matrices(saved(1e-5), saved(4.0)))
    assert not list(grown_matrices(saved(4.0), saved(float("nan"))))


@pytest.mark.parametrize(("after", "moved"), [(1.0, False), (2.0, True)])
def test_a_checksum_tells_whether_a_matrix_moved(after: float, moved: bool):
    figures = {"count": 64.0, "norm": 3.0}
    first = Architecture((tensor(checksum=1.0, **figures),), "a")
    last = Architecture((tensor(checksum=after, **figures),), "b")
    assert [len(found) for found in moved_and_still(first, last)] == [moved, not moved]


def test_wrappers_are_no_block():
    assert block_of(tensor("module.encoder.0.weight")) == "encoder"


def test_a_vocabulary_is_a_large_table():
    table, head = tensor("wte.weight", (5000, 64)), tensor("lm_head.weight", (5000, 64))
    others = (tensor("pos_embed.weight", (5000, 64)), tensor("fc.weight", (5000, 32)))
    assert vocabulary_tables([table, head, *others]) == [table, head]


def test_rows_are_compared_in_matrices_only():
    assert is_dense_matrix(tensor(equal_rows=1.0))
    assert not is_dense_matrix(tensor(shape=(2, 8), equal_rows=1.0))
    assert not is_dense_matrix(tensor(equal_rows=1.0, nan=3.0))


def test_a_tensor_that_broke_since_the_last_sound_checkpoint():
    broken, sound = tensor(nan=3.0), tensor(nan=0.0)
    assert is_broken(broken) and not is_broken(sound)
    assert cite_broken(broken, Architecture((), "a")).says.startswith("fc.weight has 3 NaN")
    saved = [Architecture((t,), name) for t, name in ((sound, "a"), (broken, "b"))]
    found = last_sound(saved, {"fc.weight"})
    assert found is not None and found.artifact == "a"


def test_why_matrices_may_stand_still():
    run = with_checkpoints(Architecture((tensor(),), "a"))
    causes = causes_of_unchanged(run, [tensor()], [tensor("b")], Strength.WEAK)
    assert list(causes) == ["frozen-parameters", "parameters-not-in-optimizer"]
    half = Tensor("a", (8, 8), "float16")
    assert "half-precision-weights" in causes_of_unchanged(run, [half], [half], Strength.WEAK)


def test_matrices_of_equal_rows_and_of_zeros():
    def tensor(name: str, norm: float, equal: float) -> Tensor:
        return Tensor(name, (64, 32), "float32", {"norm": norm, "equal_rows": equal, "nan": 0.0})

    def found(*tensors: Tensor) -> tuple[list[str], bool]:
        named, is_equal = constant_matrices(Architecture(tensors, "model.pt"))
        return [t.name for t in named], is_equal

    head = tensor("head.weight", 3.0, 0.0)
    assert found(tensor("fc1.weight", 3.0, 1.0), head) == (["fc1.weight"], True)
    assert found(tensor("a.weight", 0.0, 1.0), tensor("b.weight", 0.0, 1.0))[0] == [
        "a.weight",
        "b.weight",
    ]
    assert found(tensor("norm.weight", 3.0, 1.0), head) == ([], False)
