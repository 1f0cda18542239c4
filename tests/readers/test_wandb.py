"""W&B offline runs as wandb writes them (0.31), and as a kill leaves them."""

from __future__ import annotations

import json
import math
import os
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.readers.damage import few, mutated, survive

from traindx import open_run
from traindx.errors import UnreadableArtifact
from traindx.readers.formats.wandb.leveldb import BLOCK, HEADER, Framing
from traindx.readers.formats.wandb.reader import read, sniff

SCRIPT = """
import traceback, wandb
run = wandb.init(project="p", dir=".", config={"lr": 0.1, "opt": {"name": "adam"}})
for i in range(40):
    row = {"train/loss": 2.0 / (i + 1), "note": "x" * 3000}
    if i == 30:
        row["train/loss"] = float("nan")
    if i % 10 == 9:
        row["val"] = {"loss": 1.0 / (i + 1), "acc": 0.5}
        row["samples"] = [":::: ", "::::"]
        row["gradients/fc.weight"] = wandb.Histogram(np_histogram=([2, 2], [-2.0, 0.0, 2.0]))
    run.log(row)
    print("batch", i)
run.config.update({"late": 5})
try:
    raise RuntimeError("boom")
except RuntimeError:
    traceback.print_exc()
run.finish(exit_code=1)
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("wandb")
    folder = tmp_path_factory.mktemp("wandb")
    (folder / "train.py").write_text(SCRIPT)
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    subprocess.run(
        [sys.executable, "train.py"], cwd=folder, env=environment, check=True, capture_output=True
    )
    return next(folder.glob("wandb/offline-run-*/run-*.wandb"))


def test_a_run_that_wandb_wrote(real: Path) -> None:
    assert sniff(real, real.read_bytes()[:100]) == 1.0
    run = read(real)
    loss = run.series["loss/train"]
    assert len(loss) == 40 and math.isnan(loss.values[30])
    assert loss.values[3] == 0.5
    assert loss.steps.tolist() == list(range(40))
    assert loss.where(0) == "history row 1"
    assert run.series["loss/val"].steps.tolist() == [9, 19, 29, 39]
    assert run.series["layers/fc.weight/grad_norm"].values[0] == pytest.approx(2.0)
    settings = {s.key: s.value for s in run.config.settings}
    assert settings["lr"] == 0.1 and settings["opt.name"] == "adam" and settings["late"] == 5
    assert [f.message for f in run.failures] == ["boom"]
    assert run.failures[0].locator.startswith("console line ")
    assert [e.text for e in run.events if e.kind == "exit"] == ["the run ended with exit code 1"]
    assert len(run.samples) == 8 and run.samples[0].step == 9
    assert run.artifacts[0].warnings == ()


def test_the_whole_folder_tells_each_thing_once(real: Path) -> None:
    run = open_run(real.parent)
    assert [f.message for f in run.failures] == ["boom"]
    assert "loss/train@2" not in run.series
    assert {a.reader for a in run.artifacts} >= {"wandb", "console"}


def test_a_killed_run_keeps_what_was_written(real: Path, tmp_path: Path) -> None:
    data = real.read_bytes()
    cut = tmp_path / real.name
    # where the history lies in the file depends on the machine: cut where the loss is named
    kept = set()
    for named in re.finditer(rb"loss", data):
        cut.write_bytes(data[: named.start()])
        run = read(cut)
        assert any("killed" in w for w in run.artifacts[0].warnings)
        assert any(e.kind == "exit" and "no end" in e.text for e in run.events)
        kept.add(len(run.series["loss/train"]) if "loss/train" in run.series else 0)
    assert any(5 < count < 40 for count in kept)


def frame(*records: bytes) -> bytes:
    """Write records as wandb does."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for record in records:
        rest, is_first = record, True
        while rest or is_first:
            left = BLOCK - len(out) % BLOCK
            if left < HEADER:
                out += bytes(left)
                continue
            part, rest = rest[: left - HEADER], rest[left - HEADER :]
            kind = 1 if is_first and not rest else 2 if is_first else 3 if rest else 4
            body = bytes([kind]) + part
            out += struct.pack("<IH", zlib.crc32(body), len(part)) + body
            is_first = False
    return bytes(out)


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def row(**values: object) -> bytes:
    items = b"".join(
        field(1, field(1, name.encode()) + field(16, json.dumps(value).encode()))
        for name, value in values.items()
    )
    return field(2, items)


@given(st.lists(st.binary(max_size=100_000), max_size=6))
@few
def test_framing_returns_every_record(records: list[bytes]) -> None:
    got: list[bytes] = []

    def gather(path: Path) -> None:  # type: ignore[return]
        got.extend(Framing(path))

    survive(gather, frame(*records), "run-a.wandb")  # type: ignore[arg-type]
    assert got == records


def test_a_damaged_block_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "run-a.wandb"
    data = bytearray(frame(*(row(_step=i, loss=1.0, note="x" * 4000) for i in range(40))))
    assert len(data) > 3 * BLOCK
    data[BLOCK + 100] ^= 0xFF
    path.write_bytes(bytes(data))
    run = read(path)
    steps = run.series["loss/train"].steps
    assert steps[0] == 0 and steps[-1] == 39
    assert 40 - 2 * BLOCK // 4000 <= len(steps) < 40
    assert any("damaged" in w for w in run.artifacts[0].warnings)


def test_words_for_numbers_that_are_not_finite(tmp_path: Path) -> None:
    path = tmp_path / "run-a.wandb"
    path.write_bytes(
        frame(row(_step=0, loss=1.0), row(_step=1, loss="NaN"), row(_step=2, loss="Infinity"))
    )
    values = read(path).series["loss/train"].values
    assert np.isnan(values[1]) and np.isinf(values[2])


def test_numbers_of_the_newer_items(tmp_path: Path) -> None:
    double = varint(6 << 3 | 1) + struct.pack("<d", 0.25)
    whole = varint(5 << 3) + varint(6)  # zigzag of 3
    step = field(1, field(2, b"_step") + whole)
    path = tmp_path / "run-a.wandb"
    path.write_bytes(
        frame(field(2, field(1, field(2, b"train") + field(2, b"loss") + double) + step))
    )
    loss = read(path).series["loss/train"]
    assert loss.values.tolist() == [0.25] and loss.steps.tolist() == [3.0]


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run-a.wandb"
    path.write_bytes(b"no such thing")
    with pytest.raises(UnreadableArtifact):
        read(path)


def test_a_signal_ends_a_run(tmp_path: Path) -> None:
    path = tmp_path / "run-a.wandb"
    path.write_bytes(frame(row(loss=1.0), field(18, varint(1 << 3) + varint(137))))
    assert [e.kind for e in read(path).events] == ["killed"]


WHOLE = frame(
    *(row(_step=i, loss=1.0 / (i + 1), text="y" * 900) for i in range(40)),
    field(13, field(3, b"Traceback (most recent call last):\nValueError: x\n")),
    field(5, field(1, field(1, b"lr") + field(16, b"0.1"))),
)


@given(mutated(WHOLE))
@few
def test_any_damage_is_survived(data: bytes) -> None:
    survive(read, data, "run-a.wandb")


@given(st.lists(st.binary(max_size=300), max_size=8))
@few
def test_any_records_are_survived(records: list[bytes]) -> None:
    assert survive(read, frame(*records), "run-a.wandb") is not None
