"""Folders of recordings: one is one run, whatever of it is there; several are several."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.readers.recordings import (
    HEADER,
    caught,
    model,
    optimizer,
    sample,
    steps,
    write_lines,
    write_recording,
)

import traindx
from traindx import open_run
from traindx.fleet.local import scan
from traindx.model.recording import Counts
from traindx.model.run import Run
from traindx.readers.folders import find_runs

ROOT = Path(traindx.__file__).parent
TRAINING = "import torch\n\nmodel = torch.nn.Linear(10, 2)\n"
LOG = "".join(
    f"epoch {e}: train_loss {2.0 / (e + 1):.4f} val_loss {3.0 / (e + 1):.4f}\n" for e in range(6)
)
NOISY = (1.0 / np.arange(1, 61) + 0.01 * np.random.default_rng(0).random(60)).tolist()
RECORDS = (model(), optimizer(), sample(0), steps(NOISY))
TRACEBACK = """Traceback (most recent call last):
  File "/home/u/train.py", line 30, in <module>
    train()
  File "/home/u/train.py", line 12, in train
    loss.backward()
  File "/usr/lib/python3/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x7 and 10x2)
"""


def whole(folder: Path) -> Path:
    return write_recording(folder, RECORDS, output=LOG, sources={"/home/u/train.py": TRAINING})


def warnings(run: Run) -> list[str]:
    told = [e.text for e in run.events if e.kind == "warning"]
    return told + [w for a in run.artifacts for w in a.warnings]


@pytest.mark.parametrize("name", ["", "run.json"])
def test_a_folder_is_one_run(tmp_path: Path, name: str) -> None:
    folder = whole(tmp_path / "rec")
    (folder / "incidents" / "exception-1").mkdir(parents=True)
    (folder / "incidents" / "exception-1" / "incident.json").write_text('{"loss": [1, 2, 3]}')
    (folder / "123.stack").write_text("Thread 0x1 (most recent call first):\n")
    run = open_run(folder / name)
    assert warnings(run) == []
    assert {a.reader for a in run.artifacts} == {"recording", "console"}
    assert run.recording is not None
    assert run.recording.ending is not None
    assert run.series["loss/train"].origin.artifact == str(folder / "rank0-123.jsonl")
    assert len(run.series["loss/train"]) == 60
    assert run.series["loss/train@2"].origin.artifact == str(folder / "output.log")
    assert len(run.series["loss/val"]) == 6
    (source,) = run.sources
    assert (source.path, source.text) == ("/home/u/train.py", TRAINING)


def test_one_process_alone_is_a_run(tmp_path: Path) -> None:
    folder = whole(tmp_path / "rec")
    run = open_run(folder / "rank0-123.jsonl")
    assert run.recording is not None
    assert run.recording.ending is None
    assert {a.path for a in run.artifacts} == {str(folder / "rank0-123.jsonl")}
    assert len(run.sources) == 1


@pytest.mark.parametrize("left", [None, "", '{"k": "run", "v": 1, "comm', "{}"])
def test_without_the_file_of_the_command_the_processes_are_read(
    tmp_path: Path, left: str | None
) -> None:
    folder = whole(tmp_path / "rec")
    write_lines(
        folder / "rank1-124.jsonl",
        [{**HEADER, "rank": 1, "pid": 124, "world_size": 2}, steps([1.0, 2.0])],
    )
    (folder / "run.json").unlink()
    if left is not None:
        (folder / "run.json").write_text(left)
    run = open_run(folder)
    assert run.recording is not None
    assert [p.rank for p in run.recording.processes] == [0, 1]
    assert {"loss/train", "loss/val", "ranks/1/loss/train"} <= run.series.keys()
    assert len(run.sources) == 1


def test_it_is_read_while_it_grows(tmp_path: Path) -> None:
    folder = whole(tmp_path / "rec")
    lines = (folder / "rank0-123.jsonl").read_bytes()
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "is_running": True, "exit_code": None}))
    for cut in (1, 60, len(lines) // 2, len(lines) - 5):
        (folder / "rank0-123.jsonl").write_bytes(lines[:cut])
        (folder / "output.log").write_text(LOG[: cut // 10])
        run = open_run(folder)
        assert run.recording is not None
        assert not [w for w in warnings(run) if "rank0" in w]


def test_a_command_that_never_trained_is_still_known(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "rec", about={"exit_code": 1}, output=TRACEBACK)
    (folder / "rank0-123.jsonl").unlink()
    run = open_run(folder)
    assert run.recording is not None
    assert run.recording.processes == ()
    assert [f.type for f in run.failures] == ["RuntimeError"]


def test_a_failure_that_was_seen_and_printed_counts_once(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "rec", [*RECORDS, caught()], output=LOG + TRACEBACK)
    (failure,) = open_run(folder).failures
    assert failure.artifact == str(folder / "output.log")
    assert (failure.step, failure.time_s) == (9, 1.7e9 + 9)
    assert len(failure.frames) == 3  # the printed one has those of torch too


def test_the_first_of_a_chain_stays_first(tmp_path: Path) -> None:
    chain = (
        'Traceback (most recent call last):\n  File "/home/u/train.py", line 5, in load\n'
        "    int(x)\nValueError: no number\n\nDuring handling of the above exception, another "
        f"exception occurred:\n\n{TRACEBACK}"
    )
    folder = write_recording(tmp_path / "rec", [*RECORDS, caught()], output=LOG + chain)
    assert [f.type for f in open_run(folder).failures] == ["ValueError", "RuntimeError"]


def test_of_a_failure_printed_twice_the_last_one_ended_the_process(tmp_path: Path) -> None:
    twice = TRACEBACK + "retrying\n" * 3 + TRACEBACK
    folder = write_recording(tmp_path / "rec", [*RECORDS, caught()], output=LOG + twice)
    assert [f.step for f in open_run(folder).failures][-1] == 9


def test_failures_of_two_ranks_stay_two(tmp_path: Path) -> None:
    head = {"world_size": 2}
    folder = write_recording(tmp_path / "rec", [*RECORDS, caught()], header=head, output=LOG)
    second = {**HEADER, "rank": 1, "pid": 124, "world_size": 2}
    write_lines(folder / "rank1-124.jsonl", [second, caught(time_s=1.7e9 + 8)])
    printed = "".join(f"[rank1]: {line}\n" for line in TRACEBACK.splitlines())
    (folder / "output.log").write_text(LOG + printed)
    assert [f.rank for f in open_run(folder).failures] == [1, 0]


def test_another_failure_than_the_one_seen_is_kept(tmp_path: Path) -> None:
    other = TRACEBACK.replace("RuntimeError: mat1", "ValueError: mat1")
    folder = write_recording(tmp_path / "rec", [*RECORDS, caught()], output=LOG + other)
    assert len(open_run(folder).failures) == 2


def test_a_smoothed_loss_in_the_output_is_no_other_run(tmp_path: Path) -> None:
    smoothed = "".join(f"step {i} loss {1.5 - 0.02 * i:.4f}\n" for i in range(60))
    folder = write_recording(tmp_path / "rec", RECORDS, output=smoothed)
    run = open_run(folder)
    assert "loss/train@2" in run.series
    assert warnings(run) == []
    (tmp_path / "old.log").write_text(smoothed)
    (folder / "output.log").unlink()
    assert any(
        "if they are two runs" in w for w in warnings(open_run(folder, tmp_path / "old.log"))
    )


def test_segments_of_the_output_are_one(tmp_path: Path) -> None:
    folder = whole(tmp_path / "rec")
    (folder / "output.2.log").write_text(LOG.replace("epoch", "Epoch")[: len(LOG) // 2])
    run = open_run(folder)
    assert warnings(run) == []
    assert {a.path for a in run.artifacts} >= {str(folder / "output.2.log")}


def test_an_output_that_says_nothing_at_first_is_read(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "rec", RECORDS, output="hello\n" * 3000 + TRACEBACK)
    run = open_run(folder)
    assert warnings(run) == []
    assert [f.type for f in run.failures] == ["RuntimeError"]


def test_a_copy_stands_for_the_file_beside_it(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINING + "# edited since\n")
    write_recording(tmp_path / "traindx-runs" / "a", RECORDS, sources={str(script): TRAINING})
    (source,) = open_run(tmp_path).sources
    assert source.text == TRAINING


def test_an_index_leads_nowhere_else(tmp_path: Path) -> None:
    folder = whole(tmp_path / "rec")
    (tmp_path / "secret.py").write_text("import torch\n")
    index = {"../../secret.py": "a.py", str(tmp_path / "secret.py"): "b.py", "\0": "c.py"}
    (folder / "sources" / "index.json").write_text(json.dumps(index))
    run = open_run(folder)
    assert run.sources == ()
    assert any("cannot be read" in w for w in warnings(run))


@pytest.mark.parametrize("names", [("1", "2", "3"), ("20260101-a", "20260102-b", "20260103-c")])
def test_several_recordings_are_several_runs(tmp_path: Path, names: tuple[str, ...]) -> None:
    folders = [whole(tmp_path / "traindx-runs" / name) for name in names]
    assert find_runs(tmp_path / "traindx-runs") == folders
    found = scan([str(tmp_path / "traindx-runs")], workers=1)
    assert {row.path for row in found.rows} == {str(f) for f in folders}
    for i, folder in enumerate(folders):
        for file in folder.rglob("*"):
            os.utime(file, (1e9 + 1000 * i, 1e9 + 1000 * i))
    run = open_run(tmp_path / "traindx-runs")
    assert run.series["loss/train"].origin.artifact.startswith(str(folders[-1]))
    assert any("3 runs" in w for w in warnings(run))


def test_two_recordings_given_together_are_told_apart(tmp_path: Path) -> None:
    first = whole(tmp_path / "a")
    second = write_recording(tmp_path / "b", [*RECORDS[:3], steps([9.0, 8.0, 7.0])])
    run = open_run(first, second)
    assert any("if they are two runs" in w for w in warnings(run))


def test_a_configured_rate_that_is_not_in_force_is_still_found(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "rec", RECORDS, header={"argv": ["t.py", "--lr", "0.9"]})
    found = traindx.diagnose(open_run(folder))
    assert "lr-config-mismatch" in {f.detector for f in found.findings}


SCRIPT = """
import sys, torch
torch.manual_seed(0)
x = torch.randn(256, 10)
y = (x.sum(1) > 0).long()
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 32, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(4):
    for inputs, labels in data:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
model(torch.randn(3, 7))
"""


def test_what_the_recorder_writes_is_read(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TRAINDX_RECORDING": str(tmp_path / "rec"),
        "PYTHONPATH": str(ROOT / "capture" / "recorder" / "injected"),
    }
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 1
    run = open_run(tmp_path / "rec")
    assert warnings(run) == []
    assert run.recording is not None
    main = run.recording.main
    assert main is not None
    assert [m.type for m in main.models] == ["Sequential"]
    assert isinstance(main.counts, Counts)
    assert main.counts.steps == 32
    assert main.samples[0].names == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert len(run.series["loss/train"]) > 10
    assert run.series["loss/train"].epochs[-1] > 2
    (failure,) = run.failures
    assert failure.frames[0].line == 15
    assert failure.time_s is not None
    assert main.caught[0].kept


def test_a_command_may_print_a_table(tmp_path: Path) -> None:
    rows = "".join(f"{i},{1.5 - 0.02 * i:.4f},{0.5 + 0.01 * i:.3f}\n" for i in range(20))
    output = "epoch,train_loss,val_acc\n" + rows + TRACEBACK
    run = open_run(write_recording(tmp_path / "rec", RECORDS, output=output))
    assert len(run.series["accuracy/val"]) == 20
    assert [f.type for f in run.failures] == ["RuntimeError"]
