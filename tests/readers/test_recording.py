"""Recordings: from the files of the processes to metrics, failures, settings and records."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.readers.damage import few, mutated, survive
from tests.readers.recordings import (
    HEADER,
    caught,
    model,
    odd_records,
    optimizer,
    sample,
    steps,
    write_lines,
    write_recording,
)

from traindx.errors import UnreadableArtifact
from traindx.model.recording import Counts, Epoch, NonFinite, Place, Process, Stall, Summary
from traindx.model.run import Run
from traindx.readers.formats.recording import process_file, reader
from traindx.readers.formats.recording.process_file import Ends, read_process


def read(tmp_path: Path, *records: Any, **header: Any) -> Run:
    return reader.read(write_lines(tmp_path / "rank0-123.jsonl", [{**HEADER, **header}, *records]))


def main_of(run: Run) -> Process:
    assert run.recording is not None
    assert run.recording.main is not None
    return run.recording.main


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    records = (
        model(),
        optimizer(place=Place("a.py", 3)),
        sample(0),
        caught(),
        NonFinite(0, 7, inputs=(Summary("x", low=-math.inf, nonfinite=2),), why="log of 0"),
        Stall(0, 8, 60.0, 0.1, (("MainThread", (Place("a.py", 1),)),), ({"op": "allreduce"},)),
        Counts(0, steps=9, overhead=0.01, has_moved=True, is_end=True),
    )
    process = main_of(read(tmp_path, *records))
    assert (process.pid, process.rank, process.torch) == (123, 0, "2.13.0")
    assert process.argv == ("train.py", "--lr", "0.1", "seed=3")
    told = [process.models, process.optimizers, process.samples, process.caught]
    told += [process.nonfinite, process.stalls, (process.counts,)]
    for line, (found, written) in enumerate(zip(told, records, strict=True), 2):
        (only,) = found
        assert only is not None
        assert only.line == line
        # NaN differs from itself, but not as text
        assert repr(only).replace(f"line={line}", "line=0", 1) == repr(written)


def test_a_sample_inherits_the_names_of_the_one_before_of_its_optimizer(tmp_path: Path) -> None:
    second = {"k": "sample", "step": 1, "optimizer": 0, "grad_norms": [1.0, 2.0]}
    other = {"k": "sample", "step": 1, "optimizer": 1, "grad_norms": [5.0], "names": ["g"]}
    third = {"k": "sample", "step": 2, "optimizer": 0, "grad_norms": [1.0, None]}
    process = main_of(read(tmp_path, sample(0), other, second, third))
    assert [s.names for s in process.samples] == [
        ("fc.weight", "fc.bias"), ("g",), ("fc.weight", "fc.bias"), ("fc.weight", "fc.bias")
    ]  # fmt: skip
    assert process.samples[3].grad_norms == (1.0, None)
    assert process.samples[3].weight_norms == ()


def test_metrics_of_one_optimizer(tmp_path: Path) -> None:
    block = steps([3.0, 2.0, math.nan, None], clip_norm=[1.0, 2.0, 3.0, None], scale=[8.0] * 4)
    run = read(tmp_path, model(), optimizer(), sample(1), block)
    loss = run.series["loss/train"]
    np.testing.assert_array_equal(loss.values, [3.0, 2.0, math.nan])  # None: not known
    assert list(loss.steps) == [0, 1, 2]
    assert loss.where(0) == "line 5"
    assert list(run.series["grad_norm"].values) == [1.0, 2.0, 3.0]
    assert list(run.series["lr"].values) == [0.1] * 4
    assert run.series["time/data"].last == 0.01
    assert run.series["time/step"].last == 0.07
    assert run.series["loss_scale"].last == 8.0
    assert run.series["memory/rss"].last == 1e9 + 1
    assert run.series["layers/fc.weight/grad_norm"].last == 3.0
    assert run.series["layers/fc.weight/update_ratio"].where(0) == "line 4"
    assert "layers/fc.bias/update_ratio" not in run.series  # never known


def test_without_clipping_the_norm_comes_from_the_samples(tmp_path: Path) -> None:
    samples = (sample(0), sample(5, grad_norms=(6.0, None)), sample(6, grad_norms=(None, None)))
    norm = read(tmp_path, *samples, steps([1.0])).series["grad_norm"]
    assert list(norm.values) == [5.0, 6.0]
    assert list(norm.steps) == [0, 5]


def test_a_second_optimizer_on_the_same_loss_has_only_a_rate(tmp_path: Path) -> None:
    block = steps(
        [1.0, None, 0.5, None], optimizer=[0, 1, 0, 1], step=[0, 0, 1, 1], micro=[1, 0, 1, 0],
        lr=[0.1, 0.2, 0.1, 0.2],
    )  # fmt: skip
    run = read(tmp_path, block)
    assert {n for n in run.series if n.startswith("loss")} == {"loss/train"}
    assert run.series["lr/optimizer1"].last == 0.2
    assert len(run.series["time/step"]) == 2
    assert run.objective() is not None


def test_two_losses_keep_apart_and_are_no_objective(tmp_path: Path) -> None:
    block = steps([1.0, 2.0] * 3, optimizer=[0, 1] * 3, step=[0, 0, 1, 1, 2, 2])
    kinds = (optimizer(type="Adam"), optimizer(id=1, type="RMSprop"))
    run = read(tmp_path, *kinds, block)
    assert list(run.series["loss/train/adam0"].values) == [1.0] * 3
    assert list(run.series["loss/train/rmsprop1"].values) == [2.0] * 3
    assert run.objective() is None
    owned = [
        model(id=i, type=kind, parameters=tuple(_owned_by(i)))
        for i, kind in enumerate(["Ge", "Di"])
    ]
    named = read(tmp_path, *owned, *kinds, block)
    assert {"loss/train/ge", "loss/train/di"} <= named.series.keys()


def _owned_by(number: int) -> list[Any]:
    from dataclasses import replace

    return [replace(p, optimizer=number) for p in model().parameters]


def test_parameters_of_one_name_in_two_models_are_kept_apart(tmp_path: Path) -> None:
    samples = (sample(0), sample(0, optimizer=1, grad_norms=(7.0, 8.0)))
    run = read(tmp_path, optimizer(type="Adam"), optimizer(id=1, type="Adam"), *samples)
    assert run.series["layers/adam0.fc.weight/grad_norm"].last == 3.0
    assert run.series["layers/adam1.fc.weight/grad_norm"].last == 7.0


def test_a_spike_between_two_rows_does_not_vanish(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    count = 200
    losses = 1.0 + 0.05 * rng.standard_normal(count)
    low = losses - 0.1 * rng.random(count)
    high = losses + 0.1 * rng.random(count)
    high[100] = 50.0
    broken = [0] * count
    broken[150] = 3
    block = steps(
        losses.tolist(), stride=8, step=[8 * i + 7 for i in range(count)],
        loss_low=low.tolist(), loss_high=high.tolist(), nonfinite=broken,
    )  # fmt: skip
    loss = read(tmp_path, block).series["loss/train"]
    spike = int(np.nanargmax(loss.values))
    assert loss.values[spike] == 50.0
    assert 800 < loss.steps[spike] < 807
    assert int(np.isnan(loss.values).sum()) == 1
    assert np.all(np.diff(loss.steps) > 0)
    assert len(loss) < count + 10  # what is usual stays out


def test_steps_know_their_epoch(tmp_path: Path) -> None:
    passes = [Epoch(0, loader=0, batches=2, step=s, trained=2) for s in (2, 4)]
    validation = Epoch(0, loader=1, batches=9, step=2, trained=0)
    run = read(tmp_path, steps([1.0] * 5), *passes, validation)
    np.testing.assert_allclose(run.series["loss/train"].epochs, [0, 0.5, 1, 1.5, 2])


def test_failures_settings_and_parameters(tmp_path: Path) -> None:
    groups = ({"lr": 0.1, "betas": [0.9, 0.99]}, {"lr": 0.01, "betas": [0.9, 0.99]})
    run = read(tmp_path, model(), optimizer(groups=groups), caught(), rank=2, world_size=4)
    (failure,) = run.failures
    assert (failure.rank, failure.step, failure.time_s) == (2, 9.0, 1.7e9 + 9)
    assert failure.frames[-1].line == 12
    assert failure.locator == "line 4"
    settings = {s.key: s.value for s in run.config.settings}
    assert settings["optimizer.lr"] == 0.1
    assert settings["optimizer.group1.lr"] == 0.01
    assert "optimizer.group1.betas" not in settings
    assert (settings["lr"], settings["seed"]) == (0.1, 3)
    assert run.architecture is not None
    assert [t.shape for t in run.architecture.tensors] == [(2, 10), (2,)]


def test_other_ranks_have_names_of_their_own(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "r", header={"world_size": 2})
    second = {**HEADER, "rank": 1, "pid": 124, "world_size": 2}
    write_lines(folder / "rank1-124.jsonl", [second, sample(0), steps([9.0])])
    run = reader.read(folder / "run.json")
    assert run.series["loss/train"].values[0] == 1.0
    assert run.series["ranks/1/loss/train"].values[0] == 9.0
    assert "ranks/1/layers/fc.weight/grad_norm" not in run.series
    assert run.recording is not None
    assert [p.rank for p in run.recording.processes] == [0, 1]


def test_of_two_processes_of_a_rank_the_longer_one_is_the_main_one(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "r", [steps([1.0]), Counts(0, steps=1)])
    later = {**HEADER, "pid": 99}
    write_lines(folder / "rank0-99.jsonl", [later, steps([5.0, 6.0]), Counts(0, steps=2)])
    run = reader.read(folder / "run.json")
    assert run.series["loss/train"].values[0] == 5.0
    assert run.series["processes/123/loss/train"].values[0] == 1.0


@pytest.mark.parametrize(
    ("about", "kind", "said"),
    [
        ({"signal": 9, "exit_code": None}, "killed", "SIGKILL"),
        ({"signal": 9, "exit_code": None, "memory_kills": 1}, "killed", "out-of-memory"),
        ({"exit_code": 137}, "killed", "SIGKILL"),
        ({"signal": 2, "exit_code": None}, "exit", "SIGINT"),
        ({"exit_code": 3}, "exit", "exit code 3"),
    ],
)
def test_how_the_command_ended(tmp_path: Path, about: dict[str, Any], kind: str, said: str) -> None:
    run = reader.read(write_recording(tmp_path / "r", about=about) / "run.json")
    (event,) = run.events
    assert event.kind == kind
    assert said in event.text


def test_a_crash_below_python_is_a_failure(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "r", about={"signal": 11, "exit_code": None})
    stack = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
        '  File "/home/u/train.py", line 7 in step\n  File "/home/u/train.py", line 9 in <module>\n'
    )
    (folder / "123.stack").write_text(stack)
    run = reader.read(folder / "run.json")
    assert run.recording is not None
    assert run.recording.ending is not None
    assert run.recording.ending.last_stack == stack
    (failure,) = run.failures
    assert "Segmentation fault" in failure.message + failure.type


def test_odd_values_cost_their_field_and_are_counted(tmp_path: Path) -> None:
    odd = {
        "k": "sample", "step": "many", "loss": "nan", "names": ["a"], "grad_norms": [1],
        "place": {"line": 3}, "unknown": [1], "rss_bytes": 10**400, "is_training": 1,
        "losses": [{"producer": "no loss named"}],
    }  # fmt: skip
    short = {"k": "sample", "step": 2, "names": ["a", "b"], "grad_norms": [1.0]}
    run = read(tmp_path, odd, short, {"k": "later"}, {"k": ["list"]}, {"k": "steps", "step": ["x"]})
    (found,) = main_of(run).samples
    assert (found.step, found.place, found.losses, found.is_training) == (0, None, (), True)
    assert math.isnan(found.loss)
    assert math.isinf(found.rss_bytes)
    assert found.grad_norms == (1.0,)
    (warning,) = run.artifacts[0].warnings
    assert "of another kind" in warning


def test_a_torn_last_line_is_no_damage_but_one_in_between_is(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rank0-123.jsonl", [HEADER, steps([1.0, 0.5])])
    whole = path.read_text()
    path.write_text(whole + '{"k":"sample","ste')
    run = reader.read(path)
    assert run.artifacts[0].warnings == ()
    assert len(run.series["loss/train"]) == 2
    path.write_text(whole + "garbage\n" + whole)
    assert "line 3" in reader.read(path).artifacts[0].warnings[0]


def test_a_file_without_its_first_line_is_known_by_its_name(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rank3-77.jsonl", [sample(0)])
    process = read_process(path).process
    assert (process.rank, process.pid) == (3, 77)


def test_many_records_keep_their_first_and_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_file, "MAX_KIND", 10)
    run = read(tmp_path, *(sample(i) for i in range(50)), steps([1.0]))
    found = [s.step for s in main_of(run).samples]
    assert (found[0], found[-1]) == (0, 49)
    assert 8 <= len(found) <= 11
    assert "in the middle were left out" in run.artifacts[0].warnings[0]


def test_ends_keep_within_their_weight() -> None:
    ends: Ends[int] = Ends(4.0)
    for i in range(10):
        ends.add(i, 1.0)
    assert list(ends) == [0, 1, 8, 9]
    assert ends.left_out == 6


def test_a_newer_format_is_read_with_a_warning(tmp_path: Path) -> None:
    run = read(tmp_path, steps([1.0]), v=9)
    assert "newer recorder" in run.artifacts[0].warnings[0]
    assert "loss/train" in run.series


def test_files_are_recognised_by_how_they_begin(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "r")
    for name in ("run.json", "rank0-123.jsonl"):
        path = folder / name
        assert reader.sniff(Path("anything"), path.read_bytes()) > 0.9
    assert reader.sniff(Path("run.json"), b'{"k": "sample"}') == 0.0
    assert reader.sniff(Path("run.json"), json.dumps({"command": []}).encode()) == 0.0


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rank0-1.jsonl"
    path.write_text("no json\nat all\n")
    with pytest.raises(UnreadableArtifact):
        reader.read(path)


WHOLE = "".join(
    json.dumps(r) + "\n"
    for r in (
        HEADER,
        steps([3.0, 2.0, 1.0], clip_norm=[1.0, None, 2.0], loss_low=[1, 1, 1], stride=4),
        {"k": "sample", "step": 1, "names": ["a"], "grad_norms": [1.0], "place": {"file": "f", "line": 1}},
        {"k": "epoch", "step": 2, "trained": 2, "loader": 0},
        {"k": "caught", "type": "E", "tensors": [["f", {"shape": [1]}]], "modules": [["a", "b", [[1]]]]},
        {"k": "stall", "stacks": [["t", [{"file": "f", "line": 1}]]], "collectives": [{"a": [1]}]},
        {"k": "optimizer", "groups": [{"lr": 0.1}]},
    )
).encode()  # fmt: skip


@few
@given(mutated(WHOLE))
def test_damage_is_survived(data: bytes) -> None:
    survive(reader.read, data, "rank0-1.jsonl")


@few
@given(mutated(json.dumps({"k": "run", "v": 1, "command": ["a"], "exit_code": 1}).encode()))
def test_damage_to_the_file_of_the_command_is_survived(data: bytes) -> None:
    survive(reader.read, data, "run.json")


@few
@given(odd_records())
def test_any_json_in_any_field_is_survived(told: dict[str, Any]) -> None:
    lines = [json.dumps(r) for r in (HEADER, told, told, steps([1.0]))]
    run = survive(reader.read, ("\n".join(lines) + "\n").encode(), "rank0-1.jsonl")
    assert run is not None
    names = {s.split("/", 2)[-1] for s in run.series}
    assert "train" in names or told["k"] in {"steps", "process"}
