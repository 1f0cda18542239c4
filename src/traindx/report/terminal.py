"""The diagnosis on a terminal: the verdict first, then why, then what to do, then what is unknown.

The layout is made of words and indents alone, so that it reads the same in a pipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traindx.model.findings import (
    Diagnosis,
    Evidence,
    Experiment,
    Finding,
    Hypothesis,
    Remedy,
    Severity,
    Status,
    Verdict,
)
from traindx.model.probes import Effect, Probing
from traindx.model.run import Run, Series
from traindx.report import probe_words, trial_words, words
from traindx.report.chart import ASCII, UNICODE, Glyphs, Row, draw
from traindx.report.drawn_curves import (
    Onset,
    broken_stretches,
    first_onset,
    headline_curves,
    onset_of,
    wants_log,
)

WIDTH = 100  # a longer line is hard to find the start of
EVIDENCE_SHOWN = 6
OPEN_SHOWN = 5
REMARKS_SHOWN = 5
REASONS_SHOWN = 8
PATCH_SHOWN = 16
TRIAL_HEIGHT = 6

ROLES = {
    "curve": "cyan",
    "second": "yellow",
    "onset": "bold red",
    "broken": "red",
    "label": "dim",
    "blank": "",
}
_VERDICT = {
    Status.COMPLETE: ("✗", "bold red"),
    Status.PARTIAL: ("✗", "bold red"),
    Status.HEALTHY: ("✓", "bold green"),
    Status.INSUFFICIENT: ("?", "bold yellow"),
}
_SEVERITY = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "dim",
}
_OUTCOME = {
    Verdict.CONFIRMED: "bold green",
    Verdict.REFUTED: "red",
    Verdict.UNDECIDED: "yellow",
}
_EFFECT = {
    Effect.HELPS: "bold green",
    Effect.HURTS: "red",
    Effect.NONE: "dim",
    Effect.OPEN: "yellow",
}
_DIFF = {"added": "green", "removed": "red", "place": "dim", "context": ""}
_PLAIN = str.maketrans({"✗": "x", "✓": "+", "•": "*", "→": ">", "·": "-", "…": "~", "–": "-"})


def print_report(
    run: Run, diagnosis: Diagnosis, console: Console, *, verbose: bool = False
) -> None:
    """Print a diagnosis; `verbose` shows every finding and every name."""
    for section in _sections(run, diagnosis, glyphs_of(console), _room(console), verbose):
        show(console, section)
        show(console, Text(""))


def glyphs_of(console: Console) -> Glyphs:
    """Return the characters that a console can show."""
    return ASCII if console.options.ascii_only else UNICODE


def _room(console: Console) -> int:
    return min(console.width, WIDTH)


def show(console: Console, item: RenderableType) -> None:
    """Print one piece without trailing blanks; a poor encoding gets the nearest characters."""
    for line in console.render_lines(item, console.options.update(width=_room(console)), pad=False):
        text = Text(no_wrap=True)
        for segment in line:
            text.append(_encodable(segment.text, console), segment.style)
        text.rstrip()
        console.print(text, highlight=False, overflow="ignore", crop=False)


def _encodable(text: str, console: Console) -> str:
    if not console.options.ascii_only:
        return text
    return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")


def _sections(
    run: Run, diagnosis: Diagnosis, glyphs: Glyphs, width: int, verbose: bool
) -> Iterator[RenderableType]:
    yield _verdict(run, diagnosis)
    chart = _chart(run, diagnosis, glyphs, width)
    if chart is not None:
        yield chart
    causes = diagnosis.root_causes
    for i, hypothesis in enumerate(causes):
        yield _cause(run, hypothesis, f"{i + 1}" if len(causes) > 1 else "", verbose)
    for i, experiment in enumerate(diagnosis.experiments):
        yield _experiment(experiment, glyphs, width, is_first=i == 0)
    if diagnosis.probing is not None:
        yield _section("Probes", probes_table(diagnosis.probing, verbose=verbose))
    yield from _doubts(diagnosis, verbose)
    yield _coverage(diagnosis, width, verbose)
    yield _footer(diagnosis)


# verdict and chart


def _verdict(run: Run, diagnosis: Diagnosis) -> RenderableType:
    mark, style = _VERDICT[diagnosis.status]
    head = Text.assemble((f"{mark} {words.STATUS[diagnosis.status]}", style))
    head.append(f" · {words.clean(run.name, 80)}", "dim")
    summary = Text(words.clean(diagnosis.summary), "bold")
    return Group(head, summary) if summary else head


def _chart(run: Run, diagnosis: Diagnosis, glyphs: Glyphs, width: int) -> RenderableType | None:
    curves = headline_curves(run)
    if not curves:
        return None
    onset = first_onset(run, diagnosis, curves)
    rows = draw(curves, width - 2, onset, glyphs)
    shown = Group(_legend(curves, glyphs), *(row_text(row) for row in rows))
    return Padding(shown, (0, 0, 0, 2))


def _legend(curves: Sequence[Series], glyphs: Glyphs) -> Text:
    legend = Text(f"{glyphs.curve} {words.clean(curves[0].name, 40)}", "cyan")
    for curve in curves[1:]:
        legend.append(f"   {glyphs.second} {words.clean(curve.name, 40)}", "yellow")
    for stretch in broken_stretches(curves[0])[:1]:
        text = (
            f"   {glyphs.broken} {stretch.kind} from {curves[0].axis} {words.step(stretch.start)}"
        )
        legend.append(text, "red")
    if wants_log(curves):
        legend.append("   log scale", "dim")
    return legend


def row_text(row: Row) -> Text:
    """Return a row of a character chart with its colours."""
    text = Text(no_wrap=True, overflow="crop")
    for chars, role in row:
        text.append(chars, ROLES[role])
    text.rstrip()
    return text


# a root cause


def _cause(run: Run, hypothesis: Hypothesis, rank: str, verbose: bool) -> RenderableType:
    head = Text(f"{rank}. " if rank else "", "bold")
    head.append(words.clean(hypothesis.issue or hypothesis.cause), "bold")
    grid = _grid()
    _row(grid, "Evidence", _evidence(hypothesis.evidence, verbose))
    if hypothesis.consequences:
        _row(grid, "Leads to", Text(words.chain(hypothesis)))
    if hypothesis.counter_evidence:
        _row(grid, "Against", _evidence(hypothesis.counter_evidence, verbose))
    for i, remedy in enumerate(hypothesis.remedies if verbose else hypothesis.remedies[:2]):
        _remedy(grid, remedy, "Fix" if i == 0 else "Or")
    if words.band(hypothesis) == "fits" and hypothesis.confirm_by:
        _row(grid, "To confirm", Text(words.clean(hypothesis.confirm_by)))
    body = Group(_standing(hypothesis, onset_of(run, hypothesis)), grid)
    return Group(head, Padding(body, (0, 0, 0, 2)))


def _standing(hypothesis: Hypothesis, onset: Onset | None) -> Text:
    line = Text(words.clean(hypothesis.cause, 80), "cyan")
    line.append(" · ", "dim").append(hypothesis.severity.value, _SEVERITY[hypothesis.severity])
    line.append(" · ", "dim").append(words.confidence(hypothesis))
    if onset is not None:
        line.append(" · ", "dim").append(f"since {onset.text}")
    location = hypothesis.location
    if location is not None:
        line.append(" · ", "dim").append(f"{words.clean(location.file, 80)}:{location.line}")
    return line


def _grid() -> Table:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(width=10, no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    return grid


def _row(grid: Table, label: str, value: RenderableType) -> None:
    grid.add_row(Text(label, "dim"), value)


def _evidence(items: Sequence[Evidence], verbose: bool) -> RenderableType:
    shown = items if verbose else items[:EVIDENCE_SHOWN]
    lines = [_fact(item) for item in shown]
    if len(items) > len(shown):
        lines.append(Text(f"and {len(items) - len(shown)} more (--verbose)", "dim"))
    return _bullets(lines)


def _fact(item: Evidence) -> Text:
    return Text.assemble(words.clean(item.says, 400), (f" ({words.place(item)})", "dim"))


def _bullets(lines: Iterable[Text]) -> Table:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(width=1)
    grid.add_column(ratio=1, overflow="fold")
    for line in lines:
        grid.add_row(Text("•", "dim"), line)
    return grid


def _remedy(grid: Table, remedy: Remedy, label: str) -> None:
    _row(grid, label, Text(words.clean(remedy.change), "bold" if label == "Fix" else ""))
    if remedy.patch:
        _row(grid, "", _patch(remedy.patch))
    if remedy.expected_effect:
        _row(grid, "  expect", Text(words.clean(remedy.expected_effect)))
    if remedy.verify:
        _row(grid, "  verify", Text(words.clean(remedy.verify)))
    if remedy.if_it_fails:
        _row(grid, "  else", Text(words.clean(remedy.if_it_fails)))


def _patch(patch: str) -> RenderableType:
    lines = words.parts_of_diff(patch)
    shown = [Text(text, _DIFF[kind], overflow="fold") for kind, text in lines[:PATCH_SHOWN]]
    if len(lines) > PATCH_SHOWN:
        shown.append(Text(f"and {len(lines) - PATCH_SHOWN} more lines", "dim"))
    return Group(*shown)


# an experiment


def _experiment(
    experiment: Experiment, glyphs: Glyphs, width: int, *, is_first: bool
) -> RenderableType:
    style = _OUTCOME[experiment.verdict]
    head = Text.assemble((f"{trial_words.MARKS[experiment.verdict]} ", style))
    head.append(words.clean(experiment.cause, 80), "cyan")
    head.append(" · ", "dim").append(f"{experiment.verdict.value} by experiment", style)
    if experiment.verdict is Verdict.UNDECIDED:
        head.right_crop(len(" by experiment"))
    grid = _grid()
    for label, text in trial_words.rows_of(experiment):
        _row(grid, label, Text(text))
    parts: list[RenderableType] = [head, Padding(grid, (0, 0, 0, 2))]
    curves = trial_words.curves_of(experiment)
    if curves:
        rows = draw(curves, width - 6, None, glyphs, TRIAL_HEIGHT)
        legend = _legend(curves, glyphs)
        ceiling = trial_words.ceiling_of(experiment)
        if ceiling is not None:
            legend.append(f"   cut at {words.number(ceiling)}", "dim")
        chart = Group(legend, *(row_text(row) for row in rows))
        parts.append(Padding(chart, (0, 0, 0, 4)))
    body = Padding(Group(*parts), (0, 0, 0, 2))
    return Group(Text("Experiments", "bold"), body) if is_first else body


# probes


def probes_table(probing: Probing, *, verbose: bool = False) -> RenderableType:
    """Return the changes as a table, with the floors and what was left out below it."""
    parts: list[RenderableType] = []
    if probing.probes:
        parts.append(_probe_rows(probing))
    lines = [Text(words.clean(remark, 400)) for remark in probing.remarks]
    floors = probe_words.floors_line(probing)
    if floors:
        lines.insert(0, Text.assemble(("Floors  ", "dim"), floors))
    if probing.left_out:
        left_out = probe_words.left_out_line(probing, verbose=verbose)
        lines.append(Text.assemble(("Not tried  ", "dim"), (left_out, "dim")))
    return Group(*parts, *lines)


def _probe_rows(probing: Probing) -> Table:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(width=1)
    grid.add_column(ratio=3, overflow="fold")
    grid.add_column(ratio=4, overflow="fold")
    grid.add_column(ratio=3, overflow="fold")
    for row in probe_words.rows_of(probing):
        change, metric, before, after, noise, seeds, says = row.cells
        style = _EFFECT[row.effect]
        moved = f"{metric} {before} → {after} (noise {noise}, {words.counted(int(seeds), 'seed')})"
        mark = Text(probe_words.MARKS[row.effect], style)
        grid.add_row(mark, Text(change), Text(moved), Text(says, style))
    return grid


# what stays open


def _doubts(diagnosis: Diagnosis, verbose: bool) -> Iterator[RenderableType]:
    open_ones = words.open_hypotheses(diagnosis)
    if open_ones:
        yield _section("Open hypotheses", _open_table(open_ones, verbose))
    questions = words.questions(diagnosis)
    if questions:
        yield _section("Questions", _bullets(Text(words.clean(q)) for q in questions))
    if verbose and diagnosis.findings:
        yield _section("All findings", _findings(diagnosis.findings, verbose))
    elif diagnosis.remarks:
        yield _section("Also seen", _findings(diagnosis.remarks, verbose))


def _section(title: str, body: RenderableType) -> RenderableType:
    return Group(Text(title, "bold"), Padding(body, (0, 0, 0, 2)))


def _open_table(hypotheses: Sequence[Hypothesis], verbose: bool) -> RenderableType:
    shown = hypotheses if verbose else hypotheses[:OPEN_SHOWN]
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(width=4)
    table.add_column(overflow="fold", ratio=2)
    table.add_column(overflow="fold", ratio=3)
    for hypothesis in shown:
        decide = Text(words.clean(hypothesis.confirm_by))
        if hypothesis.confirm_by:
            decide = Text.assemble(("would decide: ", "dim"), decide)
        name = Text(words.clean(hypothesis.cause, 60), "cyan")
        table.add_row(f"{hypothesis.confidence:.2f}", name, decide)
    if len(hypotheses) > len(shown):
        rest = f"and {len(hypotheses) - len(shown)} less likely (--verbose)"
        return Group(table, Text(rest, "dim"))
    return table


def _findings(findings: Sequence[Finding], verbose: bool) -> RenderableType:
    shown = findings if verbose else findings[:REMARKS_SHOWN]
    lines = []
    for finding in shown:
        line = Text(words.clean(finding.claim, 400))
        cited = finding.evidence if verbose else finding.evidence[:1]
        line.append("".join(f" ({words.place(e)})" for e in cited), "dim")
        if verbose:
            line.append(f" · {words.clean(finding.detector, 80)}, {finding.strength.value}", "dim")
        lines.append(line)
    if len(findings) > len(shown):
        lines.append(Text(f"and {len(findings) - len(shown)} more (--verbose)", "dim"))
    return _bullets(lines)


# what was checked


def _coverage(diagnosis: Diagnosis, width: int, verbose: bool) -> RenderableType:
    parts = [*_all_checks(diagnosis)] if verbose else [_short_coverage(diagnosis, width)]
    if diagnosis.failed:
        lines = [
            Text(f"{words.clean(f.detector, 80)}: {words.clean(f.error, 200)}")
            for f in diagnosis.failed
        ]
        parts.append(_section("Crashed (says nothing about the run)", _bullets(lines)))
    spaced = [piece for part in parts for piece in (part, Text(""))]
    return Group(*spaced[:-1])


def _short_coverage(diagnosis: Diagnosis, width: int) -> RenderableType:
    """One line for what was checked, one for what was not, and what else stood in the way."""
    checked = words.counted(len(diagnosis.checked), "detector")
    lines: list[RenderableType] = [_labelled("Checked", f"{checked} (--verbose lists them)")]
    if diagnosis.skipped:
        missed = words.unchecked(diagnosis.skipped, width - len("Not checked: "))
        lines.append(_labelled("Not checked", missed))
        reasons = words.reasons(diagnosis.skipped)[:REASONS_SHOWN]
        lines += [Padding(_bullets(map(Text, reasons)), (0, 0, 0, 2))] if reasons else []
    return Group(*lines)


def _labelled(label: str, said: str) -> Text:
    return Text.assemble((f"{label}: ", "bold"), (said, "dim"))


def _all_checks(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    names = ", ".join(words.clean(name, 80) for name in diagnosis.checked) or "nothing"
    checked = words.counted(len(diagnosis.checked), "detector")
    yield _section(f"Checked: {checked}", Text(names, "dim"))
    if diagnosis.skipped:
        gaps = _bullets(map(_gap, words.gaps(diagnosis.skipped)))
        yield _section(f"Not checked: {len(diagnosis.skipped)}", gaps)


def _gap(gap: words.Gap) -> Text:
    line = Text()
    if gap.missing:
        line.append("needs ").append(gap.missing, "cyan")
    line.append(": " if gap.missing and gap.how else "").append(gap.how)
    if gap.detectors:
        line.append(f" ({'; '.join(gap.detectors)})", "dim")
    return line


def _footer(diagnosis: Diagnosis) -> RenderableType:
    opened = [a for a in diagnosis.artifacts if a.reader]
    read = [f"{words.clean(a.path, 60)} ({words.clean(a.reader, 30)})" for a in opened[:6]]
    rest = len(opened) - len(read)
    if rest:
        read.append(f"{rest} more")
    line = Text(f"Read {', '.join(read)}" if read else "Read nothing", "dim")
    line.append(f" · {diagnosis.duration_s:.1f} s", "dim")
    warned = [
        Text(f"warning: {words.clean(a.path, 60)}: {words.clean(w, 200)}", "yellow")
        for a in diagnosis.artifacts
        for w in a.warnings[:3]
    ]
    causes = diagnosis.root_causes
    more = f"More: traindx explain {words.clean(causes[0].cause, 60)}" if causes else ""
    return Group(*warned[:10], line, *([Text(more, "dim")] if more else []))
