from __future__ import annotations

import pytest

from traindx.cli.main import main


def test_a_name_cannot_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "no\x1b[31m\u202efile\x07"]) == 2
    said = capsys.readouterr().err
    assert "nofile\\x07: it does not exist" in said
    assert not {"\x1b", "\u202e", "\x07"} & set(said)


def test_a_question_cannot_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["route", "my loss is \x1b[31mNaN\u202e"]) == 0
    assert not {"\x1b", "\u202e"} & set(capsys.readouterr().out)
