"""Everything a diagnosis leaves behind in a folder: reports, figures, gradient norms, the patch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from traindx.errors import MissingExtra
from traindx.model.findings import Diagnosis, Hypothesis
from traindx.model.run import Run, Series
from traindx.report import figures, html, json, markdown, words
from traindx.report.digest import digest
from traindx.report.drawn_curves import series_cited
from traindx.report.excerpts import excerpts_of


def write_bundle(run: Run, diagnosis: Diagnosis, folder: Path) -> Mapping[str, str]:
    """Write every report into a folder and return where each one is, by its key in the JSON."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, str] = {}
    _draw(run, diagnosis, folder, made)
    gradients = gradient_analysis(run, diagnosis)
    if gradients:
        made["gradient_analysis"] = _write(folder / "gradient_analysis.md", gradients)
    patch = combined_patch(diagnosis)
    if patch:
        made["fix"] = _write(folder / "fix.patch", patch)
    page = html.render(run, diagnosis, excerpts_of(run))
    made["report"] = _write(folder / "report.html", page)
    _write(folder / "report.md", markdown.render(run, diagnosis))
    complete = replace(diagnosis, analysis_artifacts={**diagnosis.analysis_artifacts, **made})
    _write(folder / "diagnosis.json", json.render(run, complete) + "\n")
    return made


def _write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    return str(path)


Draw = Callable[[Run, Diagnosis, Path], bool]


def _draw(run: Run, diagnosis: Diagnosis, folder: Path, made: dict[str, str]) -> None:
    wanted: tuple[tuple[str, str, Draw], ...] = (
        ("loss_visualization", "loss.png", figures.draw_loss),
        ("gradient_visualization", "gradients.png", figures.draw_gradients),
        ("verification", "verification.png", figures.draw_experiments),
    )
    try:
        for key, name, draw in wanted:
            if draw(run, diagnosis, folder / name):
                made[key] = str(folder / name)
    except MissingExtra as missing:
        made["figures"] = f"not drawn: {missing}"


def combined_patch(diagnosis: Diagnosis) -> str:
    """Return one patch per root cause, each of them once: alternatives would not apply together."""
    patches = [_first_patch(h) for h in diagnosis.root_causes]
    distinct = dict.fromkeys(p.rstrip("\n") + "\n" for p in patches if p)
    return "".join(distinct)


def _first_patch(hypothesis: Hypothesis) -> str | None:
    carried = [*(r.patch for r in hypothesis.remedies), *(f.patch for f in hypothesis.findings)]
    return next((patch for patch in carried if patch), None)


def gradient_analysis(run: Run, diagnosis: Diagnosis) -> str:
    """Return the gradient norms in figures as Markdown, or nothing where none were logged."""
    total = run.get("grad_norm")
    layers = run.matching("layers/*/grad_norm")
    if total is None and not layers:
        return ""
    lines = [f"# Gradient norms: {markdown.prose(words.clean(run.name, 80))}", ""]
    head = ("series", "points", "median", "min", "max", "max / median", "last", "NaN or Inf")
    if total is not None:
        lines += ["## Whole model", "", *markdown.table(head, [_norm_row(total)]), ""]
    if layers:
        lines += ["## By layer, in the order of the log", ""]
        lines += [*markdown.table(head, [_norm_row(s) for s in layers]), ""]
    claims = _claims_on_gradients(run, diagnosis)
    if claims:
        lines += ["## What the detectors say of them", "", *(f"- {c}" for c in claims), ""]
    return "\n".join(lines)


def _norm_row(series: Series) -> tuple[str, ...]:
    figures_of = digest(series)
    numbers = series.take(series.is_finite).values
    median = float(np.median(numbers / 2) * 2) if len(numbers) else float("nan")
    ratio = words.number(figures_of.most / median) if median > 1e-300 else "-"
    return (
        markdown.code(series.name, 80),
        str(figures_of.points),
        words.number(median),
        f"{words.number(figures_of.least)} at {words.step(figures_of.least_at)}",
        f"{words.number(figures_of.most)} at {words.step(figures_of.most_at)}",
        ratio,
        words.number(figures_of.last),
        str(figures_of.broken),
    )


def _claims_on_gradients(run: Run, diagnosis: Diagnosis) -> list[str]:
    claims = []
    for finding in diagnosis.findings:
        cited = (series_cited(run, e) for e in finding.evidence)
        if any(s is not None and s.name.endswith("grad_norm") for s in cited):
            claims.append(f"{markdown.prose(finding.claim)} ({markdown.code(finding.detector)})")
    return claims
