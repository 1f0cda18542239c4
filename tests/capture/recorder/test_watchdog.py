"""The watchdog, the flight recorder and the stacks of a crash, in real processes where it matters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from math import nan
from pathlib import Path
from typing import Any

import pytest

from traindx.capture.recorder import collectives, crash
from traindx.capture.recorder import watchdog as watchdog_module
from traindx.capture.recorder.watchdog import EVERY_S, FIRST_S, LEAST_S, STEPS, Watchdog, stacks

OWN = Path(collectives.__file__).parent
SRC = OWN.parents[2]


class Training:
    """A counter, a usual step and a step number, as the recorder keeps them."""

    def __init__(self, median_s: float = 0.1) -> None:
        self.count, self.median_s, self.step = 0, median_s, 7
        self.records: list[dict[str, Any]] = []

    def progress(self) -> tuple[int, float, int]:
        return self.count, self.median_s, self.step

    def watched(self, hang_after_s: float | None = None) -> Watchdog:
        watchdog = Watchdog(self.progress, self.records.append, hang_after_s)
        watchdog.look(EVERY_S)
        return watchdog


def test_a_stall_is_written_once_per_look_and_ends() -> None:
    training = Training()
    watchdog = training.watched()
    for _ in range(int(LEAST_S) - 1):
        watchdog.look(EVERY_S)
    assert training.records == []
    watchdog.look(EVERY_S)
    watchdog.look(EVERY_S)
    (first,) = training.records
    assert (first["k"], first["step"], first["is_over"]) == ("stall", 7, False)
    assert first["waited_s"] == LEAST_S
    for _ in range(3 * int(LEAST_S)):
        watchdog.look(EVERY_S)
    assert [r["waited_s"] for r in training.records] == [LEAST_S, 2 * LEAST_S, 4 * LEAST_S]
    training.count += 1
    training.step = 8
    watchdog.look(EVERY_S)
    assert (training.records[-1]["step"], training.records[-1]["is_over"]) == (7, True)
    watchdog.look(EVERY_S)
    assert len(training.records) == 4


@pytest.mark.parametrize(
    ("median_s", "hang_after_s", "patience_s"),
    [(10.0, None, STEPS * 10.0), (nan, None, FIRST_S), (10.0, 5.0, 5.0), (nan, 5.0, 5.0)],
)
def test_patience_follows_the_usual_step(
    median_s: float, hang_after_s: float | None, patience_s: float
) -> None:
    training = Training(median_s)
    watchdog = training.watched(hang_after_s)
    watchdog.look(patience_s - 1.0)
    assert training.records == []
    watchdog.look(1.0)
    assert len(training.records) == 1


def test_progress_starts_the_wait_afresh() -> None:
    training = Training()
    watchdog = training.watched(5.0)
    for count in range(1, 20):
        training.count = count
        watchdog.look(4.0)
        watchdog.look(4.0)
    assert training.records == []


def test_the_thread_sees_where_the_main_thread_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog_module, "EVERY_S", 0.01)
    seen = threading.Event()
    records: list[dict[str, Any]] = []

    def write(record: dict[str, Any]) -> None:
        records.append(record)
        seen.set()

    watchdog = Watchdog(lambda: (3, 0.01, 3), write, 0.0)
    watchdog.start()
    assert seen.wait(30)
    watchdog.stop()
    name, places = records[0]["stacks"][0]
    assert name == "MainThread"
    own = next(p for p in places if p["function"].startswith("test_the_thread"))
    assert own["file"] == __file__ and own["code"] == "assert seen.wait(30)"
    assert places.index(own) < len(places) - 1  # the innermost frame comes last
    assert all(name != "traindx-watchdog" for name, _ in records[0]["stacks"])


@pytest.mark.parametrize("part", ["progress", "write"])
def test_a_broken_part_ends_the_watch_in_silence(
    part: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog_module, "EVERY_S", 0.01)

    def broken(*_: object) -> Any:
        raise RuntimeError("broken")

    good = {"progress": lambda: (1, 0.1, 1), "write": lambda _: None}
    parts: dict[str, Any] = {**good, part: broken}
    watchdog = Watchdog(parts["progress"], parts["write"], 0.0)
    watchdog.start()
    assert watchdog._thread is not None
    watchdog._thread.join(30)
    assert not watchdog._thread.is_alive()
    assert capsys.readouterr().err == ""


def test_a_deep_stack_keeps_its_innermost_frames() -> None:
    found: list[Any] = []

    is_deep = threading.Event()

    def look() -> None:
        is_deep.wait(30)
        found.extend(stacks())

    def deep(left: int) -> None:
        if left:
            deep(left - 1)
        else:
            is_deep.set()
            thread.join()

    thread = threading.Thread(target=look)
    thread.start()
    deep(100)
    name, places = found[0]
    assert name == "MainThread" and len(places) == 40
    assert places[0]["function"] == "deep" and places[-1]["function"] != "deep"


def test_without_distributed_there_are_no_collectives() -> None:
    assert collectives.dump() == []


RANK = """
import os, sys, time
import torch, torch.distributed as dist
from traindx.capture.recorder.watchdog import Watchdog

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
dist.all_reduce(torch.ones(3))

def write(record):
    told = [c for c in record["collectives"] if "op" in c]
    group = next(c for c in record["collectives"] if "op" not in c)
    place = [p for p in record["stacks"][0][1] if p["file"] == __file__][-1]
    print(rank, place["code"].split("(")[0], len(told), told[-1]["op"], told[-1]["seq"],
          told[-1]["is_retired"], told[-1]["input_sizes"], group["enqueued"], group["completed"], flush=True)
    os._exit(0)

Watchdog(lambda: (1, 0.1, 1), write, 0.0).start()
if rank == 0:
    dist.broadcast(torch.ones(2, 2), 0)
    dist.all_reduce(torch.ones(5))
else:
    time.sleep(60)
"""


def test_a_hanging_rank_tells_what_it_waits_in(tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text(RANK)
    environment = {**os.environ, "PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, tmp_path / "rank.py", str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE, text=True, env=environment,
        )
        for rank in (0, 1)
    ]  # fmt: skip
    told = [r.communicate(timeout=60)[0] for r in ranks]
    assert told[0].startswith("0 dist.broadcast 2 gloo:broadcast 2") or told[0].startswith(
        "0 dist.all_reduce 3 gloo:all_reduce 3 False [[5]] 3 2"
    )
    assert told[1].strip() == "1 time.sleep 1 gloo:all_reduce 1 True [[3]] 1 1"


CRASH = """
import faulthandler, os, signal, sys
sys.path.insert(0, sys.argv[1])  # the module alone, for the package imports torch
import crash

if "theirs" in sys.argv:
    faulthandler.enable()
crash.enable(sys.argv[2])
if "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), crash.ASK) if "ask" in sys.argv else os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
    print(child)
elif "segfault" in sys.argv:
    os.kill(os.getpid(), signal.SIGSEGV)
elif "ask" in sys.argv:
    os.kill(os.getpid(), crash.ASK)
"""


def crashed(tmp_path: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    (tmp_path / "crash_me.py").write_text(CRASH)
    folder = tmp_path / "recording"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, tmp_path / "crash_me.py", str(OWN), str(folder), *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done, {p.name: p.read_text() for p in folder.iterdir()}


def test_a_normal_end_leaves_no_file(tmp_path: Path) -> None:
    done, files = crashed(tmp_path, "fork")
    assert (done.returncode, done.stderr, files) == (0, "", {})


def test_a_segmentation_fault_leaves_its_stack(tmp_path: Path) -> None:
    done, files = crashed(tmp_path, "segfault")
    assert done.returncode == -signal.SIGSEGV and done.stderr == ""
    (text,) = files.values()
    assert "Segmentation fault" in text and "crash_me.py" in text


def test_the_users_own_handler_is_left_alone(tmp_path: Path) -> None:
    done, files = crashed(tmp_path, "theirs", "segfault")
    assert "Segmentation fault" in done.stderr
    assert all(text == "" for text in files.values())


@pytest.mark.skipif(not crash.ASK, reason="no real-time signals here")
def test_stacks_are_given_when_asked_for(tmp_path: Path) -> None:
    done, files = crashed(tmp_path, "theirs", "ask")
    assert done.returncode == 0 and done.stderr == ""
    (text,) = files.values()
    assert "crash_me.py" in text


@pytest.mark.skipif(not crash.ASK, reason="no real-time signals here")
def test_a_forked_child_writes_to_a_file_of_its_own(tmp_path: Path) -> None:
    done, files = crashed(tmp_path, "fork", "ask")
    assert list(files) == [f"{done.stdout.strip()}.stack"]
    assert "crash_me.py" in next(iter(files.values()))


def test_nothing_is_raised_where_no_file_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    crash.enable(tmp_path / "a file" / "folder")
    crash.disable()
    assert [p.name for p in tmp_path.iterdir()] == ["a file"]
