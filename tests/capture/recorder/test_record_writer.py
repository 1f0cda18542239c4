"""The file of a process: in order, thinned on long runs with the extremes kept, bounded."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from traindx.capture.recorder import record_writer
from traindx.capture.recorder.record_writer import COLUMNS, Thinned, Writer


def row(step: int, loss: float) -> tuple[object, ...]:
    values: dict[str, object] = {"optimizer": 0, "step": step, "loss": loss}
    return tuple(values.get(name) for name in COLUMNS)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_records_and_steps_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "rank0-1.jsonl"
    writer = Writer(str(path))
    writer.write("process", {"v": 1})
    writer.step(row(0, 1.0))
    writer.write("epoch", {"loader": 0})
    writer.step(row(1, 0.5))
    writer.close()
    assert [r["k"] for r in lines(path)] == ["process", "steps", "epoch", "steps"]
    assert "lr" not in lines(path)[1]


def test_steps_are_thinned_and_no_extreme_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "DETAILED", 10)
    thinned = Thinned()
    kept = []
    for step in range(1000):
        found = thinned.add(row(step, 500.0 if step == 777 else 1.0))
        if found is not None:
            kept.append(found)
    assert len(kept) < 80
    assert max(k[16] for k in kept if len(k) > 15) == 500.0
    assert thinned.stride > 1


def test_a_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "MAX_BYTES", 2000)
    path = tmp_path / "rank0-1.jsonl"
    writer = Writer(str(path))
    for step in range(500):
        writer.write("sample", {"step": step, "text": "x" * 50}, at_once=True)
    writer.write("caught", {"type": "RuntimeError"}, at_once=True)
    writer.close()
    assert path.stat().st_size < 4000
    assert lines(path)[-1]["k"] == "caught"


def test_numbers_that_are_none_are_written_as_python_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "rank0-1.jsonl"
    writer = Writer(str(path))
    writer.step(row(0, float("nan")))
    writer.step(row(1, float("inf")))
    writer.close()
    loss = lines(path)[0]["loss"]
    assert isinstance(loss, list) and str(loss) == "[nan, inf]"


def test_a_file_that_took_the_place_of_ours_is_left_alone(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path / "ours.jsonl"))
    writer.write("counts", {"steps": 1}, at_once=True)
    os.close(writer._file)
    with (tmp_path / "theirs.txt").open("w") as theirs:
        assert theirs.fileno() == writer._file
        writer.write("counts", {"steps": 2}, at_once=True)
        theirs.write("mine")
        theirs.flush()
        writer.close()
    assert (tmp_path / "theirs.txt").read_text() == "mine"
    lines = (tmp_path / "ours.jsonl").read_text().splitlines()
    assert [json.loads(line)["steps"] for line in lines] == [1, 2]
