"""Ranks that get different numbers of batches."""

from dataclasses import replace

from traindx.analysis.recordings.batch_counts import overtaken, uneven_loaders, uneven_passes
from traindx.analysis.recordings.ranks import Standstill
from traindx.model.recording import Epoch, Loader, Model, Place, Process, Stall


def rank(number: int, *passes: int, length: int | None = None) -> Process:
    return Process(
        path=f"rank{number}.jsonl", rank=number, world_size=2,
        models=(Model(1, wrapper="DistributedDataParallel"),),
        loaders=(Loader(2, 1, "Texts", batches=length),),
        epochs=tuple(Epoch(9, 1, n, trained=n, is_whole=True) for n in passes),
    )  # fmt: skip


def test_passes_and_loaders_are_compared_between_ranks():
    claim = "Rank 1 has 10 batches per epoch, rank 0 has 11"
    for found in (
        uneven_passes((rank(0, 11), rank(1, 10))),
        uneven_loaders((rank(0, length=11), rank(1, length=10))),
    ):
        assert found is not None and found[0] == claim
    assert uneven_passes((rank(0, 10), rank(1, 10))) is None
    assert uneven_loaders((rank(0, length=10), rank(1))) is None


def test_a_rank_that_waits_is_overtaken_by_one_that_has_finished():
    stack = (Place("train.py", 3, "main", "loss.backward()"),)
    call = {"seq": 9, "op": "gloo:all_reduce", "group": "0", "is_retired": False}
    stall = Stall(50, 10, 60.0, 0.1, (("MainThread", stack),), (call,))
    waiting = replace(rank(0), stalls=(stall,))
    found = overtaken((waiting, rank(1, 10)), (Standstill(waiting, stall),))
    assert found is not None and found[0] == "Rank 1 ran out of batches before rank 0"
    early = Standstill(waiting, replace(stall, step=4))
    assert overtaken((waiting, rank(1, 10)), (early,)) is None
