"""Errors as people paste them into a post, and what Python prints and goes on after."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.model.run import Failure
from traindx.readers.formats.console.reader import read
from traindx.tracebacks import own_frames, parse_failures

FRAME = '  File "train.py", line 31, in main\n    step(batch)\n'
INPLACE = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [torch.FloatTensor [4, 8]] is at version 2; expected version 1 instead."
)


def parse(text: str) -> tuple[Failure, ...]:
    return parse_failures(text, "post.txt")


def brief(text: str) -> list[tuple[str, str]]:
    return [(f.type, f.message) for f in parse(text)]


@pytest.mark.parametrize(
    "heading",
    [
        "raceback (most recent call last):",
        "`Traceback (most recent call last):",
        "Traceback (most recent calls WITHOUT Sacred internals):",
    ],
)
def test_headings(heading: str) -> None:
    (failure,) = parse(f"{heading}\n{FRAME}ValueError: odd\n")
    assert failure.type == "ValueError" and [f.line for f in own_frames(failure)] == [31]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I get `ValueError: Shapes (None, 4) and (None, 9) are incompatible`", "ValueError"),
        ("then **RuntimeError: CUDA error: no kernel image**. Why?", "RuntimeError"),
        ("总是报错：TypeError: forward() got an unexpected keyword", "TypeError"),
        (INPLACE, "RuntimeError"),
        (f"INFO {INPLACE}", "RuntimeError"),
    ],
)
def test_quoted_errors(text: str, expected: str) -> None:
    assert [f.type for f in parse(text)] == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "the metric `MeanSquaredError: 0.12` is fine",
        "use `ValueError` for that",
        "INFO caught `KeyError: the sample has no label`, skipping it",
        "WARNING **RuntimeError: CUDA out of memory** in this batch, skipping it",
        "[ERROR] [launch.py:434:handler] [python] exits with return code = -2",
        "docs: an error is raised if all tensors are on the same device",
    ],
)
def test_no_quoted_errors(text: str) -> None:
    assert parse(text) == ()


def test_a_sentence_after_its_own_error_is_not_a_second_one() -> None:
    assert len(parse(f"RuntimeError: {INPLACE}\n{INPLACE}\n")) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"99%|# | 8/9 [00:01<00:00, 2.16it/s]Exception ignored in: <f>\nTraceback (most recent call "
        f"last):\n{FRAME}AssertionError: can only test a child process\n",
        'Traceback (most recent call last):\n  File "/lib/loader.py", line 9, in __del__\n    stop()\n'
        "AssertionError: can only test a child process\n",
        'Traceback (most recent call last):\n  File "/usr/lib/python3.8/multiprocessing/queues.py", '
        "line 245, in _feed\n    send_bytes(obj)\nBrokenPipeError: [Errno 32] Broken pipe\n",
    ],
)
def test_python_goes_on(text: str) -> None:
    assert parse(text) == ()


def test_what_a_feeder_cannot_send_is_a_failure() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/usr/lib/python3.8/multiprocessing/queues.py", '
        "line 239, in _feed\n    obj = _ForkingPickler.dumps(obj)\nRuntimeError: unable to write to "
        "file </torch_1_2>\n"
    )
    assert [f.type for f in parse(text)] == ["RuntimeError"]


@pytest.mark.parametrize(
    "line",
    [
        "[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['python', 'main.py'] "
        "exits with return code = -9",
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 "
        "(pid: 5528) of binary: /usr/bin/python3",
    ],
)
def test_a_launchers_last_word(line: str) -> None:
    assert brief(line) == [("ProcessExitedException", "A process ended with exitcode: -9")]
    launcher = (
        'Traceback (most recent call last):\n  File "/usr/bin/torchrun", line 8, in <module>\n'
    )
    assert len(parse(f"{line}\n{launcher}")) == 1
    whole = f"{line}\n{launcher}    main()\nChildFailedError: train.py FAILED\n"
    assert [f.type for f in parse(whole)] == ["ChildFailedError"]


def test_a_frame_cut_off_after_what_it_raises() -> None:
    head = 'Traceback (most recent call last):\n  File "scaler.py", line 337, in step\n'
    checked = 'assert len(found) > 0, "No checks were recorded."'
    assert brief(f"{head}    {checked}\n") == [("AssertionError", "No checks were recorded.")]
    assert brief(f'{head}    raise ValueError("odd size")\n') == [("ValueError", "odd size")]
    assert brief(f"{head}    raise ValueError(message)\n") == [("", "")]


def test_an_error_inside_of_a_traced_function() -> None:
    text = (
        "ValueError: in user code:\n\n"
        "    /usr/lib/keras/engine/training.py:853 train_function  *\n"
        "        return step_function(self, iterator)\n\n"
        "    ValueError: Shapes (None, 8) and (None, 7) are incompatible\n"
    )
    assert brief(text) == [("ValueError", "Shapes (None, 8) and (None, 7) are incompatible")]


def test_sizes_that_a_terminal_wrapped() -> None:
    text = (
        "RuntimeError: Error(s) in loading state_dict for Net:\n        size mismatch for\n"
        "fc.weight: copying a param with\nshape\ntorch.Size([8, 4]) from checkpoint\n"
    )
    (failure,) = parse(text)
    assert "torch.Size([8, 4])" in failure.message


def test_a_log_keeps_the_frames_of_a_traceback_without_heading(tmp_path: Path) -> None:
    path = tmp_path / "post.txt"
    deep = "".join(
        f'  File "/lib/site-packages/torch/nn/modules/m{i}.py", line {i + 1}, in forward\n'
        "    return self.inner(x)\n"
        for i in range(9)
    )
    path.write_text(f"{FRAME}{deep}RuntimeError: mat1 and mat2 shapes cannot be multiplied\n")
    (failure,) = read(path).failures
    assert [f.line for f in own_frames(failure)] == [31]


def test_a_launcher_that_stops_the_others_is_no_kill(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 5527 closing signal "
        "SIGTERM\n"
    )
    assert not [e for e in read(path).events if e.kind == "killed"]


def test_a_traceback_as_a_value() -> None:
    text = (
        'KeyError: \'Traceback (most recent call last):\\n  File "data.py", line 67, in pick\\n'
        "    row = self.rows[name]\\nKeyError: \\'cat\\'\\n'"
    )
    (failure,) = parse(text)
    assert failure.type == "KeyError" and failure.message == "'cat'"
    assert [f.line for f in own_frames(failure)] == [67]


def test_a_traceback_kept_as_json() -> None:
    text = 'Original Traceback (most recent call last):\n  File \\"data.py\\", line 67, in pick\n'
    (failure,) = parse(f"{text}    row = rows[name]\nKeyError: 'cat'\n")
    assert [f.line for f in own_frames(failure)] == [67]
