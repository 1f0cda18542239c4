"""Ranks that stand still in collectives."""

from traindx.analysis.recordings.rank_calls import early_end, first_disagreement, missing_rank
from traindx.analysis.recordings.ranks import Standstill
from traindx.examples import recorded, stalled
from traindx.model.recording import Counts, Place, Process, Stall


def rank(number: int, *ops: str, done: bool = True) -> Standstill:
    calls = tuple(
        {"seq": i, "op": f"gloo:{op}", "group": "0", "is_retired": done or i < len(ops)}
        for i, op in enumerate(ops, 1)
    )
    return Standstill(Process(rank=number, world_size=2), Stall(1, 40, 60.0, collectives=calls))


def test_two_ranks_call_different_things_under_one_number():
    found = first_disagreement([rank(0, "barrier"), rank(1, "all_reduce")], "0")
    assert found is not None and [call["op"] for _, call in found] == [
        "gloo:barrier",
        "gloo:all_reduce",
    ]
    assert first_disagreement([rank(0, "barrier"), rank(1, "barrier")], "0") is None


def test_a_rank_is_missing_from_what_another_waits_in():
    ahead, behind = rank(0, "barrier", "all_reduce", done=False), rank(1, "barrier")
    found = missing_rank([ahead, behind], "0")
    assert found is not None
    assert (found[0], found[1], found[2]["seq"], found[3]) == (behind, ahead, 2, [0])
    assert missing_rank([ahead], "0") is None


def test_a_rank_that_ended_while_another_waits():
    call = {"seq": 9, "op": "gloo:all_reduce", "group": "0", "is_retired": False}
    waiting = stalled(Place("/home/me/train.py", 12, "main", "x.sum()"), collectives=(call,))
    ended = Process(counts=Counts(9, steps=40, is_end=True))
    found = early_end(recorded(ended, waiting))
    assert found is not None
    assert (found.gone.rank, found.whom.rank, len(found.evidence)) == (0, 1, 2)
    assert not found.has_as_many_batches
    assert early_end(recorded(Process(counts=Counts(9, steps=40)), waiting)) is None
