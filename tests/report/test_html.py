"""The page: self-contained, escaped, and alive in a real browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from traindx.examples import make_run
from traindx.model.findings import Diagnosis, Evidence, Finding, Status, Strength
from traindx.model.run import Artifact, Run, Setting
from traindx.report import html
from traindx.report.excerpts import excerpts_of
from traindx.report.targets import line_of

from .examples import CASES, diverged, healthy

HOSTILE = (
    "</script><script>document.documentElement.dataset.owned=1</script>"
    "<img src=x onerror=x>\"onmouseover=alert(1) ' {{data}}"
)


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] == "script":
            self.scripts[-1] += data


def hostile() -> tuple[Run, Diagnosis]:
    run = make_run({HOSTILE: [1.0, 2.0, 3.0], "loss/train": [1.0, 2.0, 3.0]})
    run = replace(
        run,
        name=HOSTILE,
        artifacts=(Artifact(HOSTILE, HOSTILE, (HOSTILE,)),),
        config=replace(run.config, settings=(Setting(HOSTILE, HOSTILE, HOSTILE, HOSTILE),)),
        sources=(),
    )
    evidence = (
        Evidence(HOSTILE, "example.log", "line 2", (0.0, 1.0)),
        Evidence(HOSTILE, HOSTILE, HOSTILE),
    )
    finding = Finding(HOSTILE, Strength.STRONG, evidence, detector=HOSTILE, onset=1.0)
    cause = replace(
        diverged()[1].hypotheses[0],
        cause=HOSTILE,
        issue=HOSTILE,
        findings=(finding,),
        consequences=(HOSTILE,),
    )
    return run, Diagnosis(
        Status.COMPLETE,
        HOSTILE,
        (cause, replace(cause, confidence=0.3)),
        (finding,),
        checked=(HOSTILE,),
        questions=(HOSTILE,),
        artifacts=run.artifacts,
    )


def page_of(case: str) -> str:
    return html.render(*CASES[case]())


@pytest.mark.parametrize("case", CASES)
def test_page_loads_nothing_and_runs_only_its_own_script(case: str) -> None:
    page = page_of(case)
    elements = Elements(page)
    for tag, attributes in elements.found:
        assert tag not in {"iframe", "object", "embed", "base", "form", "img"}
        assert not any(name.startswith("on") or name in {"src", "style"} for name in attributes)
        link = attributes.get("href") or "#"
        assert link.startswith("#") or link == "data:,"
    assert len(elements.scripts) == 2
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page
    assert len(page) < 200_000


def test_policy_names_the_script_and_the_style_by_hash() -> None:
    page = page_of("diverged")
    policy = next(
        a["content"] or ""
        for tag, a in Elements(page).found
        if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")
    for name in ("script", "style"):
        inner = re.findall(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)[-1]
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


def test_what_artifacts_say_is_escaped() -> None:
    page = html.render(*hostile(), lambda artifact, line: [(line, HOSTILE)])
    elements = Elements(page)
    assert len(elements.scripts) == 2
    assert not any(tag == "img" for tag, _ in elements.found)
    assert not any(name.startswith("on") for _, a in elements.found for name in a)
    data = json.loads(elements.scripts[0])
    assert any("</script>" in series["name"] for series in data["series"])


def test_a_million_points_stay_small_and_keep_their_extremes() -> None:
    values = np.random.default_rng(0).normal(1.0, 0.1, 1_000_000)
    values[123_456] = 77.0
    values[500_000:500_500] = np.nan
    page = html.render(make_run({"loss/train": values}), healthy()[1])
    (series,) = json.loads(Elements(page).scripts[0])["series"]
    assert len(series["x"]) <= 20_002
    assert series["points"] == 1_000_000
    assert 77.0 in series["y"]
    assert None in series["y"]
    assert series["broken"] == [[500_000, 500_499, "NaN"]]


def test_pieces_of_a_sentence_keep_their_blanks() -> None:
    page = page_of("diverged")
    assert "<code>rank-divergence</code>: KeyError: &#x27;rank&#x27;" in page
    assert "train.log</code> console-log" in page


def test_evidence_leads_somewhere_even_without_script() -> None:
    run, diagnosis = diverged()
    page = html.render(run, diagnosis, excerpts_of(run))
    elements = Elements(page)
    anchors = {a["id"] for _, a in elements.found if "id" in a}
    links = [a for _, a in elements.found if a.get("class") == "evidence"]
    assert len(links) >= 6
    assert all((a["href"] or "")[1:] in anchors for a in links)
    setting = next(a for a in links if a["href"] == "#setting-0")
    assert setting["id"] == "evidence-0-3"


@pytest.mark.parametrize(
    ("locator", "lines"),
    [
        ("line 812", (812, 812)),
        ("line 12 to 131", (12, 131)),
        ("lines 3-5", (3, 5)),
        ("epoch line", None),
        ("optimizer.lr", None),
    ],
)
def test_locators_name_lines(locator: str, lines: tuple[int, int] | None) -> None:
    assert line_of(locator) == lines


# in a real browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine; install the package chromium"
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars"
    " --disable-background-networking --disable-component-update --disable-sync --dump-dom"
    " --window-size=1280,900 --virtual-time-budget=4000 --disable-dev-shm-usage"
)


def opened(page: str, folder: Path, anchor: str = "") -> str:
    """Return the document of a page after its script has run."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    profile = folder / "profile"
    command = [
        str(CHROMIUM),
        *FLAGS.split(),
        f"--user-data-dir={profile}",
        f"{path.as_uri()}{anchor}",
    ]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    return done.stdout.decode("utf-8", "replace")


def chart_in(document: str) -> dict[str, str | None]:
    return next(a for _, a in Elements(document).found if a.get("id") == "chart-root")


@needs_browser
def test_page_draws_its_curves(tmp_path: Path) -> None:
    document = opened(page_of("diverged"), tmp_path)
    assert 'data-ready="true"' in document
    chart = chart_in(document)
    assert chart["data-points"] == str(177 + 8)
    assert chart["data-group"] == "loss"
    assert chart["data-scale"] == "log"
    assert chart["data-view"] == "all"
    assert "onset: step 240 (epoch 6)" in document
    assert document.count('class="onset"') == 1
    assert 'class="broken"' in document


@needs_browser
def test_evidence_zooms_its_curve_and_shows_its_lines(tmp_path: Path) -> None:
    run, diagnosis = diverged()
    page = html.render(run, diagnosis, lambda artifact, line: [(line, f"{artifact}!")])
    document = opened(page, tmp_path, "#evidence-0-0")
    chart = chart_in(document)
    assert chart["data-highlight"] == "evidence-0-0"
    assert chart["data-group"] == "grad_norm"
    low, high = map(float, (chart["data-view"] or "").split())
    assert 0 < low < 240
    assert high > 352
    assert 'class="picked"' in document
    current = [a for _, a in Elements(document).found if a.get("aria-current") == "true"]
    assert [a["id"] for a in current] == ["evidence-0-0"]
    assert 'class="excerpt is-active"' in document


@needs_browser
def test_chart_answers_mouse_wheel_and_keys(tmp_path: Path) -> None:
    gestures = (Path(__file__).parent / "gestures.js").read_text(encoding="utf-8")
    script = f"<script>{gestures}</script></body>"
    page = re.sub(r"<meta http-equiv[^>]*>", "", page_of("diverged")).replace("</body>", script)
    document = opened(page, tmp_path)
    body = next(a for tag, a in Elements(document).found if tag == "body")
    drag, pan, reset, wheel, key, linear, toggled = json.loads(body["data-seen"] or "[]")
    assert reset == key == "all|185|log"
    assert drag != reset != wheel
    assert pan != drag
    assert linear == "all|185|linear"
    assert toggled == "all|8|linear"
    assert re.search(r"loss/val: [\d.]+", body["data-tip"] or "")


@needs_browser
def test_nothing_from_artifacts_runs_in_a_browser(tmp_path: Path) -> None:
    run, diagnosis = hostile()
    page = html.render(run, diagnosis, lambda artifact, line: [(line, HOSTILE)])
    document = opened(page, tmp_path, "#evidence-0-0")
    assert 'data-ready="true"' in document
    assert "data-owned" not in document


@needs_browser
def test_policy_stops_a_script_that_got_in(tmp_path: Path) -> None:
    intruder = "<script>document.documentElement.dataset.owned = 1</script></body>"
    document = opened(page_of("healthy").replace("</body>", intruder), tmp_path)
    assert 'data-ready="true"' in document
    assert "data-owned" not in document


@needs_browser
def test_a_page_without_metrics_is_ready_too(tmp_path: Path) -> None:
    document = opened(html.render(make_run(), healthy()[1]), tmp_path)
    assert 'data-ready="true"' in document
    assert "there is no curve" in document
