"""The folders of torchrun: which rank printed what, and which one failed first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.readers.damage import few, mutated, survive

from traindx import open_run
from traindx.errors import UnreadableArtifact
from traindx.readers.formats.torchrun import rank_of, read

SCRIPT = """
import os, time
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    rank = int(os.environ["RANK"])
    for i in range(5):
        print(f"step {i} loss {1.0 / (i + 1 + rank):.4f}", flush=True)
    if rank == 1:
        raise RuntimeError("the size of tensor a must match")
    time.sleep(60)

main()
"""


def error(kind: str, message: str, time_s: int) -> str:
    stack = f'Traceback (most recent call last):\n  File "t.py", line 7, in main\n    f()\n{kind}: {message}\n'
    extra = {"py_callstack": stack, "timestamp": str(time_s)}
    return json.dumps({"message": {"message": f"{kind}: {message}", "extraInfo": extra}})


def write(folder: Path, rank: int, **files: str) -> None:
    place = folder / "none_abc" / "attempt_0" / str(rank)
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name.replace("_", ".")).write_text(text)


def test_a_run_that_torchrun_wrote(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
               "--master-port", "0", "--log-dir", "logs", "--redirects", "3", "t.py"]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    run = open_run(tmp_path / "logs")
    assert run.series["loss/train"].values[0] == 1.0
    assert run.series["ranks/1/loss/train"].values[0] == 0.5
    (failure,) = run.failures
    assert (failure.type, failure.rank) == ("RuntimeError", 1)
    assert failure.time_s and failure.time_s > 1.7e9
    assert failure.frames[-1].file.endswith("t.py")


def test_the_rank_that_failed_first_comes_first(tmp_path: Path) -> None:
    write(
        tmp_path, 0, stdout_log="step 1 loss 2\n", error_json=error("ConnectionError", "peer", 1009)
    )
    write(tmp_path, 1, stdout_log="step 1 loss 3\n", error_json=error("IndexError", "root", 1001))
    write(
        tmp_path,
        2,
        stderr_log=json.loads(error("ValueError", "late", 1010))["message"]["extraInfo"][
            "py_callstack"
        ],
    )
    run = open_run(tmp_path)
    assert [(f.rank, f.type) for f in run.failures] == [
        (1, "IndexError"), (0, "ConnectionError"), (2, "ValueError")
    ]  # fmt: skip
    assert run.series["ranks/1/loss/train"].values.tolist() == [3.0]


def test_two_attempts_are_one_run(tmp_path: Path) -> None:
    for attempt, steps in ((0, range(5)), (1, range(3, 9))):
        place = tmp_path / f"attempt_{attempt}" / "0"
        place.mkdir(parents=True)
        (place / "stdout.log").write_text("".join(f"step {i} loss {9 - i}\n" for i in steps))
    assert len(open_run(tmp_path).series["loss/train"].timeline()) == 9


def test_a_rank_is_a_folder_below_an_attempt() -> None:
    assert rank_of(Path("a/attempt_0/3/stdout.log")) == 3
    assert rank_of(Path("a/3/stdout.log")) is None
    assert rank_of(Path("a/attempt_0/x/stdout.log")) is None


def test_an_error_without_a_stack(tmp_path: Path) -> None:
    place = tmp_path / "attempt_0" / "4"
    place.mkdir(parents=True)
    (place / "error.json").write_text('{"message": "Signal 9 (SIGKILL) received by PID 3"}')
    (failure,) = read(place / "error.json").failures
    assert failure.rank == 4 and "SIGKILL" in failure.message


def test_a_cut_error_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    path.write_text(error("ValueError", "x", 1)[:40])
    with pytest.raises(UnreadableArtifact, match="cut off"):
        read(path)


@given(mutated(error("ValueError", "x", 1).encode()) | st.binary(max_size=200))
@few
def test_any_damage_is_survived(data: bytes) -> None:
    survive(read, data, "attempt_0/1/error.json")
    survive(read, data, "attempt_0/1/stdout.log")
