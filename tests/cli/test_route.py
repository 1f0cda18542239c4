"""`traindx route`: from the command line, a file or standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from traindx.cli.main import main


def test_it_prints_json_as_the_contract_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["route", "--format", "json", "Training is slow, should I use mixed precision?"]) == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["specialists"] == ["performance-profiling", "mixed-precision-and-optimization"]
    assert told["overrides"] == [
        "the question proposes mixed precision; the bottleneck is not measured yet"
    ]
    assert told["question"] is None
    assert told["first_steps"]
    assert told["artifacts_wanted"]


def test_it_prints_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["route", "--verbose", "loss", "is", "nan"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1. debugging-techniques")
    assert "First steps" in out
    assert "nan-loss (symptom)" in out


def test_it_reads_a_file_and_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    post = tmp_path / "post.txt"
    post.write_text("Hi,\n\nmy loss is flat, it does not learn.\n", encoding="utf-8")
    assert main(["route", "--quiet", "--file", str(post)]) == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(post.read_bytes())))
    assert main(["route", "--quiet", "-"]) == 0
    assert capsys.readouterr().out.split() == ["debugging-techniques"] * 2


def test_quiet_prints_the_question_or_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["route", "--quiet", "fix my training"]) == 0
    assert main(["route", "--quiet", "boil an egg"]) == 0
    asked, declined = capsys.readouterr().out.splitlines()
    assert asked.endswith("?")
    assert declined.startswith("Not about training models")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "route what?"),
        (["  "], "route what?"),
        (["slow", "--file", "x.txt"], "not both"),
        (["--file", "absent.txt"], "absent.txt"),
    ],
)
def test_misuse_is_one_line(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["route", *arguments]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
