"""What the parent keeps and reads beside the command: output, sources, records, stacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx.capture.launcher import stacks
from traindx.capture.launcher.output_log import LONGEST_LINE, OutputLog
from traindx.capture.launcher.record_tail import Following
from traindx.capture.launcher.source_copies import MOST_BYTES, MOST_FILES, Sources


def kept(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.glob("output*")}


def test_the_first_and_the_newest_output_is_kept(tmp_path: Path) -> None:
    log = OutputLog(tmp_path, pytest.fail, segment_bytes=100)
    for i in range(100):
        log.append(b"line %04d of ten\n" % i)
    log.close()
    segments = kept(tmp_path)
    assert len(segments) == 4
    assert segments["output.log"].startswith(b"line 0000 of ten\n")
    newest = max(segments, key=lambda n: int(n.split(".")[1]) if n != "output.log" else 1)
    assert segments[newest].endswith(b"line 0099 of ten\n")
    assert all(data.startswith(b"line ") and data.endswith(b"ten\n") for data in segments.values())


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    log = OutputLog(tmp_path, pytest.fail, segment_bytes=100)
    for _ in range(100):
        log.append(b"." * 30)
    log.close()
    assert len(kept(tmp_path)) == 4
    assert all(len(data) <= 300 for data in kept(tmp_path).values())


def test_a_log_that_cannot_be_written_says_so_once(tmp_path: Path) -> None:
    complaints: list[str] = []
    log = OutputLog(tmp_path / "missing", complaints.append)
    log.append(b"lost")
    log.append(b"lost")
    log.close()
    assert complaints == ["the output is no longer recorded: No such file or directory"]


def test_two_streams_do_not_mix_within_a_line(tmp_path: Path) -> None:
    log = OutputLog(tmp_path, pytest.fail)
    out, err = log.stream(is_alone=False), log.stream(is_alone=False)
    out(b"step 1 ")
    err(b"a warning")
    out(b"loss 2.0\nstep 2 ")
    err(b"\n 10%\r 20%")
    out(b"x" * LONGEST_LINE)
    log.close()
    lines = b"step 1 loss 2.0\na warning\n 10%\rstep 2 " + b"x" * LONGEST_LINE + b" 20%"
    assert kept(tmp_path) == {"output.log": lines}


def test_sources_are_copied_once_with_their_places(tmp_path: Path) -> None:
    cwd, away, recording = tmp_path / "cwd", tmp_path / "away", tmp_path / "recording"
    for folder in (cwd / "lib", away, recording):
        folder.mkdir(parents=True)
    inside, outside = cwd / "lib" / "net.py", away / "tool.py"
    inside.write_text("first")
    outside.write_text("tool")
    large = cwd / "large.py"
    large.write_bytes(b"#" * (MOST_BYTES + 1))
    sources = Sources(recording, cwd)
    named = [str(inside), str(outside), str(large), str(cwd / "gone.py"), "relative.py", 7]
    sources.keep(named)
    inside.write_text("edited while it trains")
    sources.keep(named)
    index = json.loads((recording / "sources" / "index.json").read_text())
    assert index["lib/net.py"] == str(inside)
    assert sorted(index.values()) == sorted([str(inside), str(outside)])
    assert (recording / "sources" / "lib" / "net.py").read_text() == "first"
    flat = next(copy for copy, original in index.items() if original == str(outside))
    assert "/" not in flat and flat.endswith("away_tool.py")


def test_sources_are_bounded(tmp_path: Path) -> None:
    files = []
    for i in range(MOST_FILES + 5):
        path = tmp_path / f"m{i}.py"
        path.write_text("")
        files.append(str(path))
    recording = tmp_path / "recording"
    recording.mkdir()
    Sources(recording, tmp_path).keep(files)
    assert len(json.loads((recording / "sources" / "index.json").read_text())) == MOST_FILES


def test_records_are_followed_as_they_grow(tmp_path: Path) -> None:
    following = Following(tmp_path)
    path = tmp_path / "rank1-77.jsonl"
    (tmp_path / "other.jsonl").write_text('{"k":"stall"}\n')
    with path.open("w") as file:
        file.write('{"k":"process"}\n{"k":"sources","files":["/a.py"]}\n{"k":"sta')
        file.flush()
        following.look()
        assert following.take_sources() == ["/a.py"] and following.take_sources() == []
        assert not following.stalled
        file.write('ll","step":3}\nnot JSON\n{"k":"stall",\n')
        file.flush()
        following.look()
        assert [(f.rank, f.pid) for f in following.stalled] == [(1, 77)]
        file.write('{"k":"stall","step":3,"is_over":true}\n')
    following.look()
    assert not following.stalled


CRASH = """Fatal Python error: Segmentation fault

Thread 0x00007f0000000001 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait

Current thread 0x00007f0000000002 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/home/me/train.py", line 12 in step
  File "/home/me/train.py", line 30 in <module>

Extension modules: numpy (total: 1)
"""


def test_the_place_of_a_crash_is_the_user_s_innermost_line(tmp_path: Path) -> None:
    (tmp_path / "41.stack").write_text(CRASH)
    (tmp_path / "42.stack").write_text(CRASH.partition("\n")[2])  # asked for, not crashed
    (tmp_path / "43.stack").write_text("Fatal Python error: Aborted\n\nCurrent thr")
    first, second = stacks.crashes(tmp_path)
    assert (first.pid, first.file, first.line, first.function) == (
        41,
        "/home/me/train.py",
        "12",
        "step",
    )
    assert (second.pid, second.error, second.place) == (43, "Aborted", "")
