"""The ranks of a recorded run: their collectives, fingerprints and series."""

from __future__ import annotations

from dataclasses import replace

from traindx.analysis.recordings.ranks import (
    Standstill,
    are_all_in_one,
    call_kind,
    first_error,
    has_exited_well,
    lost_connections,
    rank_series,
    shared_prints,
    silent_ranks,
    what_it_waits_for,
)
from traindx.examples import make_run, recorded, stalled
from traindx.model.recording import Caught, Counts, Ending, Fingerprint, Place, Process, Stall


def test_a_rank_that_called_nothing_belongs_to_the_first_group_only():
    calls = ({"seq": 3, "op": "nccl:all_reduce", "group": "1"},)
    still = Standstill(Process(), Stall(1, 40, 60.0, collectives=calls))
    assert still.calls_in("1").keys() == {3}
    assert (still.last_call("0"), still.last_call("1"), still.last_call("2")) == (0, 3, -1)


def test_sizes_count_only_where_all_ranks_must_have_the_same():
    reduced = {"op": "nccl:all_reduce", "input_sizes": [[3]]}
    assert call_kind(reduced) != call_kind({**reduced, "input_sizes": [[4]]})
    gathered = {"op": "nccl:all_gather", "input_sizes": [[3]]}
    assert call_kind(gathered) == call_kind({**gathered, "input_sizes": [[4]]})


def test_fingerprints_are_compared_at_steps_that_all_ranks_have():
    first = Process(fingerprints=(Fingerprint(1, 0, batch=0.1), Fingerprint(2, 8, batch=0.2)))
    second = Process(fingerprints=(Fingerprint(1, 8, batch=0.3),))
    assert list(shared_prints((first, second), "batch")) == [8]
    assert shared_prints((first, second), "parameters") == {}
    assert shared_prints((), "batch") == {}


def test_the_series_of_rank_0_may_be_that_of_the_run():
    run = make_run({"time/data": [0.1, 0.2], "ranks/1/time/data": [0.3, 0.4]})
    first, second = rank_series(run, 0, "time/data"), rank_series(run, 1, "time/data")
    assert first is not None and first.values.tolist() == [0.1, 0.2]
    assert second is not None and second.values.tolist() == [0.3, 0.4]
    assert rank_series(run, 2, "time/data") is None


def test_all_ranks_wait_in_one_collective():
    def waiting(seq: int) -> Standstill:
        call = {"seq": seq, "op": "gloo:all_reduce", "group": "0", "is_retired": False}
        return Standstill(Process(), Stall(1, 40, 60.0, collectives=(call,)))

    assert are_all_in_one([waiting(3), waiting(3)], 2)
    assert not are_all_in_one([waiting(3), waiting(4)], 2)
    assert not are_all_in_one([waiting(3)], 2)


def test_a_command_that_exits_well():
    assert has_exited_well(recorded(Process(), ending=Ending(exit_code=0)))
    assert has_exited_well(recorded(Process()))
    assert not has_exited_well(recorded(Process(), ending=Ending(exit_code=130)))


def test_what_a_process_waits_for():
    place = Place("/usr/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 1, "get")
    loading = Standstill(Process(), Stall(1, 40, 60.0, 0.1, (("MainThread", (place,)),)))
    assert what_it_waits_for(loading, [loading])[0] == ", waiting for the data loader"
    plain = Standstill(Process(), Stall(1, 40, 60.0))
    assert what_it_waits_for(plain, [plain]) == ("", {})


def test_the_first_error_and_who_waits_for_it():
    def raised(time_s: float) -> Process:
        places = (Place("/home/me/train.py", 31, "main", "y = batch['label']"),)
        return Process(caught=(Caught(44, "KeyError", "'label'", 40, time_s, places=places),))

    waiting = stalled(Place("/home/me/train.py", 12, "main", "loss.backward()"))
    found = first_error(recorded(raised(9.0), raised(3.0), replace(waiting)))
    assert found is not None
    assert (found[0].rank, found[2]) == (1, [2])
    assert first_error(recorded(raised(9.0), raised(3.0))) is None


def test_ranks_that_left_no_word():
    message = "Connection closed by peer [::1]:4321"
    lost = Process(caught=(Caught(44, "RuntimeError", message, 40, 9.0),))
    found = silent_ranks(recorded(lost, Process()))
    assert found is not None
    assert ([p.rank for p in found[0]], len(found[1])) == ([1], 1)
    assert len(lost_connections(recorded(lost, Process()))) == 1
    ended = Process(counts=Counts(9, is_end=True))
    assert silent_ranks(recorded(lost, ended)) is None
