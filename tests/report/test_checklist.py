"""The checklist before a long job, as each reader gets it."""

from __future__ import annotations

import io
import json

from rich.console import Console

from traindx.model.findings import Evidence, Severity
from traindx.model.preflight import Check, Checklist, Outcome
from traindx.report.checklist import print_checklist, render

CITED = Evidence("step 0: loss 60", "rank0.jsonl", "line 4", (0.0, 0.0), {"loss": float("inf")})
CHECKS = (
    Check("runs", "the command runs", Outcome.PASSED, "200 steps"),
    Check(
        "first-loss",
        "loss at initialisation",
        Outcome.FAILED,
        "the first loss is 60 <b>\x1b[31m",
        (CITED,),
        Severity.MEDIUM,
        "look at the *scale*",
        ("bad-initialisation",),
    ),
    Check("overlap", "validation shares no examples", Outcome.OPEN, "no loader was met"),
)
CHECKLIST = Checklist(
    ("python", "train.py"),
    CHECKS,
    warnings=("it opens a connection",),
    redirected=("/data/out.pt",),
    steps=200,
    duration_s=41.2,
)


def printed(checklist: Checklist, *, verbose: bool = False, encoding: str = "utf-8") -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_checklist(checklist, Console(file=out, width=100), verbose=verbose)
    out.flush()
    return out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined,no-any-return]


def test_the_terminal_shows_verdict_marks_and_fixes() -> None:
    lines = printed(CHECKLIST).splitlines()
    assert lines[0] == "Fix this first: the first loss is 60 <b>."
    text = "\n".join(lines)
    assert "  ✓ the command runs: 200 steps" in text
    assert "  ✗ loss at initialisation: the first loss is 60 <b>" in text
    assert "bad-initialisation, medium" in text
    assert "step 0: loss 60 (rank0.jsonl: line 4)" in text
    assert "→ look at the *scale*" in text
    assert "  – validation shares no examples: not judged: no loader was met" in text
    assert "side effect that cannot be ruled out: it opens a connection" in text
    assert "kept in the copy, not written: /data/out.pt" in text
    assert lines[-1] == "took 41 s, 200 steps of the command on a copy"


def test_a_poor_terminal_gets_plain_characters() -> None:
    assert "  x loss at initialisation" in printed(CHECKLIST, encoding="ascii")


def test_json_is_strict_and_whole() -> None:
    told = json.loads(render("json", CHECKLIST))
    assert told["verdict"] == "fix_first" and told["steps"] == 200
    assert [c["outcome"] for c in told["checks"]] == ["passed", "failed", "not_judged"]
    failed = told["checks"][1]
    assert failed["severity"] == "medium" and failed["causes"] == ["bad-initialisation"]
    assert failed["evidence"][0]["values"] == {"loss": "inf"}
    assert told["diagnosis"] is None


def test_markdown_and_html_show_text_as_it_is() -> None:
    markdown, page = render("markdown", CHECKLIST), render("html", CHECKLIST)
    assert "- ✗ **loss at initialisation**: the first loss is 60 \\<b\\>" in markdown
    assert "    - fix: look at the \\*scale\\*" in markdown
    assert "<b>" not in page and "&lt;b&gt;" in page and "default-src 'none'" in page
    assert "\x1b" not in markdown + page


def test_the_three_verdicts() -> None:
    assert CHECKLIST.verdict == "fix first"
    ready = Checklist((), (CHECKS[0], CHECKS[2]), steps=200)
    assert ready.verdict == "ready" and ready.summary == "Ready: 1 check passed, 1 not judged."
    unknown = Checklist((), (CHECKS[2],))
    assert unknown.verdict == "unknown" and unknown.summary == "Not known: no loader was met."
