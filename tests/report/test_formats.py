"""JSON, Markdown and SARIF, as the programs that read them want them."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from traindx.errors import UnknownName
from traindx.examples import make_run
from traindx.model.findings import (
    Diagnosis,
    Evidence,
    Finding,
    Location,
    Severity,
    Skipped,
    Strength,
)
from traindx.report import FORMATS, markdown, render, sarif
from traindx.report import json as json_report
from traindx.report.words import Gap, gaps

from .examples import CASES, diverged, healthy


def refuse(name: str) -> float:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("case", CASES)
def test_json_is_strict_and_returns(case: str) -> None:
    run, diagnosis = CASES[case]()
    data = json.loads(json_report.render(run, diagnosis), parse_constant=refuse)
    assert Diagnosis.from_dict(data).to_dict() == diagnosis.to_dict()


def test_json_has_no_nan() -> None:
    run, diagnosis = diverged()
    odd = Evidence("odd", "a", "b", (float("nan"), float("inf")), {"x": float("-inf")})
    finding = Finding("odd", Strength.WEAK, (odd,), onset=float("nan"))
    text = json_report.render(run, replace(diagnosis, findings=(*diagnosis.findings, finding)))
    assert json.loads(text, parse_constant=refuse)["findings"][-1]["onset"] == "nan"


def test_json_names_a_renamed_detector_as_before_too() -> None:
    _, diagnosis = healthy()
    finding = Finding("seen", Strength.WEAK, (), detector="missing-set-epoch")
    data = replace(diagnosis, findings=(finding,)).to_dict()
    assert data["findings"][0]["also_known_as"] == "sampler-in-one-order"
    data["findings"][0]["detector"] = "sampler-in-one-order"  # as an older release wrote it
    assert Diagnosis.from_dict(data).findings == (finding,)


def test_every_format_renders() -> None:
    for name in FORMATS:
        assert render(name, *diverged())
    with pytest.raises(UnknownName, match="markdown"):
        render("pdf", *diverged())


def test_checks_are_grouped_by_what_most_of_them_miss() -> None:
    found = gaps(
        [
            Skipped("a", ("loss",), "log the loss"),
            Skipped("b", ("lr", "loss"), "log the rate; log the loss"),
            Skipped("c", ("lr|config",), "log the rate"),
            Skipped("d", (), "not reached within --max-time"),
            Skipped("", ("gone.log",), "gone.log: not there"),
        ]
    )
    assert found == [
        Gap("the training loss", ("a", "b, with the learning rate"), "log the loss"),
        Gap("", ("d",), "not reached within --max-time"),
        Gap("the learning rate or the config", ("c",), "log the rate"),
        Gap("", (), "gone.log: not there"),
    ]


# Markdown

HOSTILE = "a|b `c` <script>alert(1)</script> **d** [e](http://f) $g$ @someone # h"


def test_markdown_holds_what_the_terminal_shows() -> None:
    text = markdown.render(*diverged())
    for wanted in ("lr-too-high", "shown (0.95)", "since step 240", "train.log: line 132 to 188"):
        assert wanted in text
    assert "```diff" in text
    assert text.count("\n- Not checked: 4 (") == 1


def test_markdown_shows_artifacts_harmlessly() -> None:
    run, diagnosis = diverged()
    finding = Finding(HOSTILE, Strength.WEAK, (Evidence(HOSTILE, HOSTILE, "```\n`"),))
    told = replace(diagnosis, summary=HOSTILE, findings=(*diagnosis.findings, finding))
    page = MarkdownIt("gfm-like", {"linkify": False}).render(markdown.render(run, told))
    assert "<script" not in page
    assert 'href="http://f"' not in page
    assert "<strong>d</strong>" not in page
    assert "@someone" not in re.sub("<code>.*?</code>", "", page)


def test_a_table_keeps_its_columns() -> None:
    rows = markdown.table(("a", "b"), [(markdown.code("x|y"), markdown.prose("p|q"))])
    page = MarkdownIt("gfm-like", {"linkify": False}).render("\n".join(rows))
    assert page.count("<td>") == 2
    assert "<code>x|y</code>" in page


# SARIF


def test_sarif_has_the_fields_that_2_1_0_requires() -> None:
    log = json.loads(sarif.render(*diverged()))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "traindx"
    (result,) = run["results"]
    rule = driver["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "large-learning-rate"
    assert rule["shortDescription"]["text"]
    assert rule["help"]["text"]
    assert result["level"] == "error"
    assert result["message"]["text"].startswith("SGD with momentum runs at")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "train.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 9, "endLine": 9}


def test_sarif_keeps_the_former_id_of_a_renamed_rule() -> None:
    place = Location("train.py", 1, 1)
    finding = Finding("x", Strength.WEAK, (), location=place, detector="missing-set-epoch")
    log = json.loads(sarif.render(make_run(), replace(healthy()[1], findings=(finding,))))
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    assert rule["deprecatedIds"] == ["sampler-in-one-order"]


def test_sarif_leaves_out_what_has_no_place() -> None:
    log = json.loads(sarif.render(*healthy()))
    assert log["runs"][0]["results"] == []
    assert log["runs"][0]["tool"]["driver"]["rules"] == []


@pytest.mark.parametrize(
    ("severity", "level"),
    [("critical", "error"), ("high", "error"), ("medium", "warning"), ("low", "note")],
)
def test_sarif_level_follows_severity(severity: str, level: str) -> None:
    run, diagnosis = diverged()
    cause = replace(diagnosis.hypotheses[0], severity=Severity(severity))
    log = json.loads(sarif.render(run, replace(diagnosis, hypotheses=(cause,))))
    assert log["runs"][0]["results"][0]["level"] == level


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("src/my train.py", "src/my%20train.py"),
        ("/home/me/train.py", "file:///home/me/train.py"),
        ("C:\\me\\train.py", "file:///C:/me/train.py"),
    ],
)
def test_sarif_paths_are_uris(file: str, uri: str) -> None:
    finding = Finding("claim", Strength.WEAK, (), location=Location(file, 0, 0), detector="x")
    diagnosis = replace(healthy()[1], findings=(finding,))
    result = json.loads(sarif.render(make_run(), diagnosis))["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri
    assert place["region"]["startLine"] == 1
