"""The terminal report: golden text at two widths, plain in a pipe, nothing that acts on a terminal.

After a wanted change of the layout, write the golden files anew and read the difference:

    TRAINDX_WRITE_GOLDEN=1 python -m pytest tests/report/test_terminal.py && git diff tests/report
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from traindx.examples import make_run
from traindx.model.findings import Diagnosis, Evidence, Skipped
from traindx.model.run import Run
from traindx.report.inspection import print_inspection, to_dict
from traindx.report.terminal import print_report

from .examples import CASES, diverged, healthy

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J [bold]not markup[/bold]"
    " \u202eabc\r\nnext\x08 \ud800"
)


def printed(run: Run, diagnosis: Diagnosis, width: int = 80, *, verbose: bool = False) -> str:
    file = io.StringIO()
    print_report(run, diagnosis, Console(file=file, width=width), verbose=verbose)
    return file.getvalue()


def inspected(run: Run, width: int = 80) -> str:
    file = io.StringIO()
    print_inspection(run, Console(file=file, width=width))
    return file.getvalue()


def agrees_with_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("TRAINDX_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("case", CASES)
def test_report_reads_as_agreed(case: str, width: int) -> None:
    agrees_with_golden(f"{case}-{width}.txt", printed(*CASES[case](), width))


@pytest.mark.parametrize("width", [80, 120])
def test_inspection_reads_as_agreed(width: int) -> None:
    agrees_with_golden(f"inspection-{width}.txt", inspected(diverged()[0], width))


def test_verbose_reads_as_agreed() -> None:
    agrees_with_golden("diverged-verbose-80.txt", printed(*diverged(), verbose=True))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("case", CASES)
def test_no_line_is_wider_than_the_terminal(case: str, width: int) -> None:
    text = printed(*CASES[case](), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_a_pipe_gets_no_escapes_and_no_boxes() -> None:
    text = printed(*diverged())
    assert "\x1b" not in text
    assert not any("\u2500" <= c <= "\u257f" for c in text)


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    run, diagnosis = diverged()
    coloured, plain = io.StringIO(), io.StringIO()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_report(run, diagnosis, Console(file=coloured, force_terminal=True, width=80))
    monkeypatch.setenv("NO_COLOR", "1")
    print_report(run, diagnosis, Console(file=plain, force_terminal=True, width=80))
    assert "\x1b[36m" in coloured.getvalue()
    assert "\x1b[36m" not in plain.getvalue()


def test_a_poor_encoding_gets_ascii() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    print_report(*diverged(), Console(file=file, width=80))
    file.flush()
    assert b"lr-too-high" in raw.getvalue()


def test_artifacts_cannot_act_on_the_terminal() -> None:
    run, diagnosis = diverged()
    cause = diagnosis.hypotheses[0]
    finding = replace(cause.findings[0], evidence=(Evidence(HOSTILE, HOSTILE, HOSTILE),))
    told = replace(
        diagnosis,
        summary=HOSTILE,
        hypotheses=(replace(cause, issue=HOSTILE, findings=(finding,)),),
        findings=(finding,),
        questions=(HOSTILE,),
    )
    text = printed(replace(run, name=HOSTILE), told, verbose=True)
    assert not any(ord(c) < 32 and c != "\n" for c in text)
    assert not any("\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in text)
    assert "\u202e" not in text
    assert "[bold]not markup[/bold]" in text


def test_inspection_shows_hostile_names_harmlessly() -> None:
    run = make_run({HOSTILE: [1.0, 2.0]}, config={HOSTILE: HOSTILE})
    assert "\x1b" not in inspected(run)


def test_a_healthy_report_is_short_and_says_what_was_not_checked() -> None:
    text = printed(*healthy())
    assert len(text.splitlines()) < 25
    assert text.startswith("✓ No problem found")
    assert "\nNot checked: 3 (2 need the gradient norm, 1 the training code)\n" in text


def test_a_reason_that_is_no_missing_artifact_is_always_said() -> None:
    run, diagnosis = healthy()
    late = Skipped("plateau", (), "not reached within --max-time; allow more time")
    unread = Skipped("", ("odd.bin",), "odd.bin: not recognised")
    text = printed(run, replace(diagnosis, skipped=(late, unread)))
    assert "Not checked: 2\n" in text
    assert "• not reached within --max-time; allow more time" in text
    assert "• odd.bin: not recognised" in text


def test_inspection_gives_figures_as_json() -> None:
    found = to_dict(diverged()[0])
    loss = next(m for m in found["metrics"] if m["name"] == "loss/train")
    assert loss["points"] == 200
    assert loss["not_numbers"] == 23
    assert loss["last"] == "nan"
    assert loss["max"]["at"] == 352


def test_asking_for_a_format_imports_no_other_library() -> None:
    code = (
        "import sys, traindx.report, traindx.report.html, traindx.report.json,"
        "traindx.report.markdown, traindx.report.bundle;"
        "print([m for m in ('rich', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
