"""Experiments in every report: cause, change, verdict, both curves, and nothing that acts."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from traindx.diagnosis.engine import judge
from traindx.model.findings import Diagnosis, Experiment, Trial, Verdict
from traindx.model.run import Run
from traindx.report import html, markdown, render
from traindx.report.bundle import write_bundle
from traindx.report.terminal import print_report

from .examples import PATCH, diverged
from .test_html import HOSTILE, Elements, needs_browser, opened

STEPS = tuple(map(float, range(1, 121)))


def rerun(seed: int, *, is_changed: bool, breaks_at: int = 90) -> Trial:
    rng = np.random.default_rng(seed)
    loss = 2.3 * np.exp(-np.arange(120) / 40) + 0.2 + rng.normal(0, 0.02, 120)
    if not is_changed:
        loss *= np.exp(np.arange(120) / 25)
        loss[breaks_at:] = np.nan
    symptoms = () if is_changed else ("The loss is NaN since step 91",)
    return Trial(is_changed, seed, STEPS, tuple(map(float, loss)), symptoms, "stopped after 120")


def proof(**changes: object) -> Experiment:
    trials = tuple(rerun(s, is_changed=c) for s in range(3) for c in (False, True))
    made = Experiment(
        "lr-too-high",
        "the learning rate from 0.8 to 0.4",
        Verdict.CONFIRMED,
        "the symptom is in every control and in no changed rerun, and the loss falls",
        trials,
        PATCH,
        applied=120,
        duration_s=12.0,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def refutation() -> Experiment:
    trials = tuple(
        replace(rerun(s, is_changed=False), is_changed=c) for s in range(2) for c in (False, True)
    )
    return Experiment(
        "fp16-overflow", "mixed precision off", Verdict.REFUTED, "nothing changed", trials
    )


def crash() -> Experiment:
    trial = Trial(False, 0, (), (), (), "FileNotFoundError: data.csv")
    why = "the command cannot be rerun: FileNotFoundError: data.csv"
    return Experiment("nan-in-data", "bad batches dropped", Verdict.UNDECIDED, why, (trial,))


def verified() -> tuple[Run, Diagnosis]:
    run, diagnosis = diverged()
    return run, judge(diagnosis, [proof(), refutation(), crash()], run)


def printed(width: int, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    print_report(*verified(), Console(file=file, width=width))
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_terminal(width: int) -> None:
    text = printed(width)
    flat = " ".join(text.split())
    assert "confirmed by experiment" in flat and "refuted by experiment" in flat
    assert "the learning rate from 0.8 to 0.4 (as a patch of the source)" in flat
    assert re.search(
        r"changed +loss 2\.\d+ → 0\.\d+ in 120 steps, symptom absent \(3 seeds\)", flat
    )
    assert "loss 2.521 → NaN in 120 steps, the loss is NaN since step 91 (3 seeds)" in flat
    assert "⠒⠒ as it is o changed ░ NaN from step 91" in flat
    assert "? nan-in-data · undecided" in flat and "FileNotFoundError" in flat
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_a_poor_encoding_tells_the_curves_apart_too() -> None:
    flat = " ".join(printed(80, "ascii").split())
    assert "* as it is o changed # NaN from step 91" in flat


def test_markdown() -> None:
    text = markdown.render(*verified())
    (row,) = [line for line in text.splitlines() if line.startswith("| **confirmed**")]
    cells = row.strip("| ").split(" | ")
    assert len(cells) == 6 and cells[1] == "`lr-too-high`"
    assert "NaN in 120 steps" in cells[3] and "symptom absent (3 seeds)" in cells[4]


def test_sarif_carries_experiments_as_a_property() -> None:
    log = json.loads(render("sarif", *verified()))
    told = log["runs"][0]["properties"]["experiments"]
    assert [e["verdict"] for e in told] == ["confirmed", "refuted", "undecided"]


def test_bundle_draws_both_curves(tmp_path: Path) -> None:
    made = write_bundle(*verified(), tmp_path)
    assert Path(made["verification"]).read_bytes().startswith(b"\x89PNG")
    data = json.loads((tmp_path / "diagnosis.json").read_text())
    assert len(data["experiments"]) == 3
    assert data["root_causes"][0]["confirmed"] is True
    assert data["experiments"][0]["trials"][0]["losses"][-1] == "nan"


def test_page_has_a_figure_that_can_be_read_aloud() -> None:
    found = Elements(html.render(*verified())).found
    articles = [a for tag, a in found if a.get("class") == "experiment"]
    assert [a["id"] for a in articles] == ["experiment-0", "experiment-1", "experiment-2"]
    drawings = [a for tag, a in found if tag == "svg" and a.get("role") == "img"]
    titles = {a.get("id") for tag, a in found if tag == "title"}
    assert len(drawings) == 2 and {a["aria-labelledby"] for a in drawings} <= titles
    paths = [a["class"] for tag, a in found if tag == "path"]
    assert paths.count("control") == 3 + 4 - 2 and paths.count("changed") == 3 + 2
    assert ("a", "#experiment-0") in {(tag, a.get("href")) for tag, a in found}


@pytest.mark.parametrize(
    "losses",
    [(), (1.0,), (float("nan"),) * 3, (1e308, -1e308, 1e308), (0.0, 0.0, 0.0), (float("inf"), 1.0)],
)
def test_odd_curves_are_drawn_or_left_out(losses: tuple[float, ...], tmp_path: Path) -> None:
    steps = tuple(map(float, range(len(losses))))
    trials = (Trial(False, 0, steps, losses), Trial(True, 0, steps[:1], losses[:1]))
    run, diagnosis = diverged()
    odd = replace(diagnosis, experiments=(proof(trials=trials),))
    print_report(run, odd, Console(file=io.StringIO(), width=80))
    write_bundle(run, odd, tmp_path)


def hostile() -> tuple[Run, Diagnosis]:
    run, diagnosis = diverged()
    trial = Trial(True, 0, (1.0, 2.0), (1.0, 2.0), (HOSTILE,), HOSTILE)
    evil = proof(change=HOSTILE, reason=HOSTILE, on_top_of=(HOSTILE,), trials=(trial,))
    return run, judge(diagnosis, [evil], run)


def test_what_a_program_says_acts_nowhere() -> None:
    run, diagnosis = hostile()
    file = io.StringIO()
    terminal = replace(diagnosis.experiments[0], reason="\x1b[2J\x1b]0;x\x07", change="\x1b[31m")
    console = Console(file=file, width=80)
    print_report(run, replace(diagnosis, experiments=(terminal,)), console)
    assert "\x1b" not in file.getvalue() and "\x07" not in file.getvalue()
    page = Elements(html.render(run, diagnosis))
    assert len([t for t, _ in page.found if t == "script"]) == 2
    assert not any(t == "img" for t, _ in page.found)
    assert "<img" not in re.sub(r"`[^`]*`", "", markdown.render(run, diagnosis))


@needs_browser
def test_nothing_of_it_runs_in_a_browser(tmp_path: Path) -> None:
    document = opened(html.render(*hostile()), tmp_path, "#experiment-0")
    assert 'data-ready="true"' in document and "data-owned" not in document


def test_a_loss_beyond_all_bounds_does_not_hide_the_other() -> None:
    wild = replace(rerun(0, is_changed=False), losses=tuple(2.3 * 1.9**i for i in range(120)))
    run, diagnosis = diverged()
    odd = replace(diagnosis, experiments=(proof(trials=(wild, rerun(0, is_changed=True))),))
    file = io.StringIO()
    print_report(run, odd, Console(file=file, width=80))
    assert re.search(r"o changed .*cut at 7\.\d", file.getvalue())
    assert "cut at 7." in html.render(run, odd)
