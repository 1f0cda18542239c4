"""No renderer crashes, whatever a run holds."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from traindx.model.findings import (
    Diagnosis,
    Evidence,
    Failed,
    Finding,
    Hypothesis,
    Remedy,
    Severity,
    Skipped,
    Status,
    Strength,
)
from traindx.model.run import (
    Architecture,
    Artifact,
    Config,
    Event,
    Failure,
    Frame,
    Origin,
    Run,
    Series,
    Setting,
    Tensor,
)
from traindx.report import figures, html, markdown, sarif
from traindx.report import json as json_report
from traindx.report.bundle import write_bundle
from traindx.report.inspection import print_inspection, to_dict
from traindx.report.terminal import print_report

NUMBERS = st.one_of(
    st.floats(),
    st.sampled_from([0.0, -0.0, 1e308, -1e308, 1.7976931348623157e308, 5e-324, float("nan")]),
)
# a counter may be torn, repeated or negative, but it was counted
STEPS = st.one_of(st.floats(-1e18, 1e18), st.just(float("nan")), st.integers(0, 9).map(float))
TEXTS = st.one_of(
    st.text(st.characters(), max_size=30),
    st.sampled_from(
        [
            "",
            "x" * 500,
            "שלום עולם",
            "\x1b[2J\x07",
            "[/bold]",
            "</script>",
            "$\\frac$",
            "損失 📉",
            "%s {0}",
        ]
    ),
)
NAMES = st.one_of(
    TEXTS,
    st.sampled_from(
        ["loss/train", "loss/val", "grad_norm", "layers/a.b/grad_norm", "layers/c/grad_norm", "lr"]
    ),
)


@st.composite
def series(draw: st.DrawFn) -> Series:
    values = draw(st.lists(NUMBERS, max_size=12))
    steps = draw(
        st.one_of(
            st.just([float(i) for i in range(len(values))]),
            st.lists(STEPS, min_size=len(values), max_size=len(values)),
        )
    )
    axis = draw(st.sampled_from(["step", "epoch", "point"]))
    name = draw(NAMES)
    has_epochs = draw(st.booleans())
    epochs = np.floor(np.arange(len(values)) / 3) if has_epochs else np.empty(0)
    return Series(name, np.array(values), np.array(steps), Origin(draw(TEXTS), name), axis, epochs)


@st.composite
def evidence(draw: st.DrawFn) -> Evidence:
    steps = draw(st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS)))
    locator = draw(st.one_of(TEXTS, st.sampled_from(["line 3", "line 999999999", "lines 0-1"])))
    return Evidence(draw(TEXTS), draw(TEXTS), locator, steps, {draw(TEXTS): draw(NUMBERS)})


@st.composite
def diagnoses(draw: st.DrawFn) -> tuple[Run, Diagnosis]:
    text = draw(TEXTS)
    found = draw(st.lists(series(), max_size=5))
    run = Run(
        name=text,
        series={s.name: s for s in found},
        events=(Event(text, text, text, text),),
        failures=(Failure(text, text, text, text, (Frame(text, -1, text, text),)),),
        config=Config((Setting(text, draw(st.one_of(NUMBERS, TEXTS, st.none())), text, text),)),
        architecture=Architecture((Tensor(text, (0,)), Tensor("a.b.c", (3, 4))), text),
        artifacts=(Artifact(text, text, (text,)),),
    )
    facts = tuple(draw(st.lists(evidence(), max_size=3)))
    onset = draw(st.one_of(st.none(), NUMBERS))
    finding = Finding(text, Strength.WEAK, facts, is_symptom=True, onset=onset, detector=text)
    cause = Hypothesis(
        text,
        draw(st.sampled_from([0.0, 0.5, 0.7, 0.9, 1.0, float("nan")])),
        text,
        draw(st.sampled_from(list(Severity))),
        findings=(finding,),
        opposing=(finding,),
        consequences=(text,),
        remedies=(Remedy(text, text, text, text, draw(st.one_of(st.none(), TEXTS))),),
        confirm_by=text,
    )
    return run, Diagnosis(
        draw(st.sampled_from(list(Status))),
        text,
        (cause,),
        (finding,),
        (text,),
        (Skipped(text, (text,), text), Skipped(text, (), text)),
        (Failed(text, text),),
        (text,),
        run.artifacts,
        duration_s=0.1,
    )


def refuse(name: str) -> float:
    raise AssertionError(name)


many = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@many
@given(diagnoses(), st.sampled_from([20, 40, 80, 120]), st.booleans())
def test_terminal_never_crashes(told: tuple[Run, Diagnosis], width: int, verbose: bool) -> None:
    file = io.StringIO()
    print_report(*told, Console(file=file, width=width), verbose=verbose)
    print_inspection(told[0], Console(file=file, width=width), verbose=verbose)
    text = file.getvalue()
    text.encode("utf-8")
    assert not any(ord(c) < 32 and c != "\n" for c in text)


@many
@given(diagnoses())
def test_text_formats_never_crash(told: tuple[Run, Diagnosis]) -> None:
    markdown.render(*told).encode("utf-8")
    json.loads(json_report.render(*told), parse_constant=refuse)
    json.loads(sarif.render(*told), parse_constant=refuse)
    json.dumps(to_dict(told[0]), allow_nan=False)


@many
@given(diagnoses())
def test_page_never_crashes(told: tuple[Run, Diagnosis]) -> None:
    page = html.render(*told, lambda artifact, line: [(line, artifact)])
    page.encode("utf-8")
    HTMLParser().feed(page)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(diagnoses())
def test_figures_and_bundle_never_crash(told: tuple[Run, Diagnosis]) -> None:
    with TemporaryDirectory() as folder:
        write_bundle(*told, Path(folder))


@pytest.mark.parametrize(
    "values",
    [[], [1.0], [float("nan")], [float("nan")] * 3, [1e308, -1e308], [5e-324, 1e308], [0.0, 0.0]],
    ids=str,
)
def test_loss_figure_of_odd_values(values: list[float], tmp_path: Path) -> None:
    array = np.array(values, dtype=np.float64)
    loss = Series("loss/train", array, np.arange(len(array), dtype=float), Origin("a", "loss"))
    run = Run(series={"loss/train": loss})
    drawn = figures.draw_loss(run, Diagnosis(Status.HEALTHY, ""), tmp_path / "loss.png")
    assert drawn is bool(values)
