"""Replicas of one model on several ranks."""

from dataclasses import replace

import numpy as np

from traindx.analysis.recordings.replicas import (
    batches_at_same_position,
    cite_divided_data,
    cite_sums,
    differ,
    is_always_slower,
    is_averaged,
    layout_of,
    shuffled_distributed_loader,
    time_alone,
    where_time_is_lost,
)
from traindx.examples import make_run, watched, weights
from traindx.model.recording import Epoch, Fingerprint, Loader, Optimizer, Process


def test_sums_differ_beyond_rounding():
    prints = [Fingerprint(1, 0, parameters=v) for v in (1.25, 1.25 + 1e-9)]
    assert differ([Process(host="a"), Process(host="a")], prints)
    assert not differ([Process(host="a"), Process(host="b")], prints)


def test_layouts_are_shapes_of_parameters():
    assert layout_of(watched(*weights("a"))) == (((16, 16),),)
    assert layout_of(watched(*weights("a"))) != layout_of(watched(*weights("a", "b")))


def test_local_sgd_is_averaged_now_and_then():
    assert is_averaged(Process(optimizers=(Optimizer(1, type="PostLocalSGDOptimizer"),)))
    assert not is_averaged(Process(optimizers=(Optimizer(1, type="SGD"),)))


def test_batches_at_the_same_position_of_two_epochs():
    loader = Loader(1, 0, sampler="DistributedSampler", is_shuffled=True)
    epochs = tuple(Epoch(9, 0, 20, 20 * (i + 1), trained=20) for i in range(3))
    prints = tuple(Fingerprint(s, s, batch=float(s)) for s in (4, 8, 24))
    process = Process(loaders=(loader,), epochs=epochs, fingerprints=prints)
    assert shuffled_distributed_loader(process) is loader
    assert [(a.step, b.step) for a, b in batches_at_same_position(process)] == [(4, 24)]
    uneven = replace(process, epochs=(*epochs, Epoch(9, 0, 21, 81, trained=21)))
    assert batches_at_same_position(uneven) == []


def test_a_rank_loses_its_time_alone():
    series = {"time/data": [0.1] * 40, "time/forward": [0.2] * 40}
    series |= {"ranks/1/time/data": [0.5] * 40, "ranks/1/time/forward": [0.2] * 40}
    run = make_run(series)
    times = {rank: time_alone(run, rank) for rank in (0, 1)}
    assert is_always_slower({r: t for r, t in times.items() if t is not None}, 1)
    assert where_time_is_lost(run, 1, [0, 1], 0.4) == "waiting for data"
    assert not is_always_slower({0: np.ones(4), 1: np.array([9.0, 9.0, 1.0, 1.0])}, 1)
    assert time_alone(make_run({"time/data": [0.1] * 5}), 0) is None


def test_sums_and_parts_of_the_data_are_cited():
    prints = [Fingerprint(1, 4, parameters=1.5)]
    (cited,) = cite_sums([Process(rank=0)], prints)
    assert "sum up to 1.5 at step 4" in cited.says
    text = "sampler = DistributedSampler(data)\n"
    assert cite_divided_data(make_run(sources={"train.py": text})) is not None
    assert cite_divided_data(make_run()) is None
