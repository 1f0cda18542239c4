"""`traindx inspect` on a recording: what a recorder saw, in words."""

from __future__ import annotations

import json
from io import StringIO
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.readers.damage import few
from tests.readers.recordings import (
    PLACE,
    caught,
    model,
    odd_records,
    optimizer,
    sample,
    steps,
    write_batch,
    write_recording,
)

from traindx import open_run
from traindx.cli.main import main
from traindx.model.recording import Activation, Counts, Loader, NonFinite, Stall, Summary
from traindx.readers.formats.recording.kept_step import kept_batches
from traindx.report.inspection import print_inspection, to_dict

KEPT = "incidents/exception-123-step9"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_batch(tmp_path / "rec" / KEPT)
    activations = (Activation("fc", "relu", (32, 2), 0.0, 3.0, 0.5, 0.7, dead=0.25),)
    broken = NonFinite(
        0, 5, phase="forward", op="log", place=PLACE, is_exact=True, why="the smallest input is 0",
        inputs=(Summary("x", (4,), low=0.0, high=1.0),),
    )  # fmt: skip
    stall = Stall(0, 8, 61.0, 0.1, (("MainThread", (PLACE,)),), ({"op": "all_reduce"},))
    records = [
        model(), optimizer(strangers=1), Loader(0, dataset="Digits", size=500, batch_size=32),
        sample(0), sample(7, activations=activations, has_moved=(False, None)),
        steps([1.0, 0.5, 0.25]), caught(kept=KEPT), broken, stall,
        Counts(0, steps=9, backwards=9, samples=2, overhead=0.012, why_off="KeyError: 'x'"),
    ]  # fmt: skip
    about = {"exit_code": 1}
    return write_recording(tmp_path / "rec", records, about=about)


def shown(folder: Path, *, verbose: bool = False, width: int = 100) -> str:
    run = open_run(folder)
    assert run.recording is not None
    file = StringIO()
    console = Console(file=file, width=width)
    print_inspection(run, console, verbose=verbose, kept=kept_batches(run.recording))
    return file.getvalue()


def test_everything_is_told(folder: Path) -> None:
    text = " ".join(shown(folder).split())
    for said in (
        "python train.py ended with exit code 1 after 60 s",
        "rank 0 of 1, process 123",
        "9 steps, 9 times backward, 2 looked at closely, overhead 1.2 %",
        "the recorder turned itself off: KeyError: 'x'",
        "Net: 22 parameters in 2 tensors",
        "SGD: 2 tensors in 1 group, 1 of them in no known model",
        "lr 0.1, weight_decay 0.01",
        "Digits: 500 examples, batches of 32, in order",
        "3 steps timed, step 0 to 2; median 70 ms",
        "data 10 ms (14 %)",
        "Last look at parameters: step 7",
        "fc.weight 3 1 0.001 did not move",
        "25 % dead",
        "cross_entropy: prediction [32, 2]",
        "batch 0 [32, 10], float32, -1 to 1",
        "Exception at step 9",
        "through the modules model (Net) [3, 7] fc (Linear) [3, 7]",
        "tensors in train, line 12 x [3, 7], float32, -1 to 1",
        f"the batch was kept in {KEPT} 0 [2, 2], float32, 1 to 40 labels: left out",
        "seen in the loss, began in the forward: log the smallest input is 0",
        "Standstill at step 8 no progress for 61 s",
        "thread MainThread /home/u/train.py:12 in train",
        "collective op all_reduce",
    ):
        assert said in text, said


def test_many_parameters_are_cut_in_the_middle(tmp_path: Path) -> None:
    names = tuple(f"layers.{i}.weight" for i in range(100))
    many = sample(
        0, names=names, grad_norms=(1.0,) * 100, weight_norms=(inf,) * 100, update_ratios=(),
        has_moved=(),
    )  # fmt: skip
    folder = write_recording(tmp_path / "rec", [many, steps([1.0])])
    text = shown(folder)
    table = text[text.index("Last look") : text.index("What entered")]
    assert "layers.0.weight" in table
    assert "layers.99.weight" in table
    assert "layers.50.weight" not in table
    assert "and 76 more" in table
    assert "layers.50.weight" in shown(folder, verbose=True)


def test_the_command_line_shows_it_and_its_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(folder)]) == 0
    assert "Exception at step 9" in capsys.readouterr().out
    assert main(["inspect", str(folder), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["recording"]
    assert told["ending"]["exit_code"] == 1
    (process,) = told["processes"]
    assert process["caught"][0]["tensors"][0][1]["shape"] == [3, 7]
    assert [s["step"] for s in process["samples"]] == [7]
    assert told["kept"][KEPT]["tensors"][0]["shape"] == [2, 2]


@pytest.mark.parametrize("kept", ["../../elsewhere", "/etc", "incidents/gone", "incidents/\0"])
def test_a_batch_that_is_not_there_is_said_to_be(tmp_path: Path, kept: str) -> None:
    write_batch(tmp_path / "elsewhere")
    folder = write_recording(tmp_path / "a" / "rec", [caught(kept=kept)])
    run = open_run(folder)
    assert run.recording is not None
    ((tensors, notes),) = kept_batches(run.recording).values()
    assert tensors == ()
    assert notes


def test_terminal_sequences_of_a_recording_do_nothing(tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;title\x07"
    records = [
        model(type=evil), optimizer(type=evil), caught(message=evil, type=evil),
        sample(0, names=(evil, evil)), Counts(0, why_off=evil),
    ]  # fmt: skip
    folder = write_recording(
        tmp_path / "rec",
        records,
        about={"command": [evil], "last_stack": evil},
        header={"host": evil},
    )
    assert "\x1b" not in shown(folder, verbose=True)


@few
@given(st.lists(odd_records(), min_size=1, max_size=4))
def test_odd_values_are_shown_somehow(odd: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as place:
        folder = write_recording(Path(place, "rec"), [model(), *odd, sample(0), steps([1.0])])
        assert shown(folder)
        run = open_run(folder)
        json.dumps(to_dict(run), allow_nan=False)


def test_other_runs_are_shown_as_before(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n" + "".join(f"{i},{1 / (i + 1)}\n" for i in range(10)))
    file = StringIO()
    print_inspection(open_run(path), Console(file=file, width=80))
    assert "Recorded" not in file.getvalue()
