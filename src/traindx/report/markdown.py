"""The diagnosis as Markdown, for an issue tracker: the same content as on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from traindx.model.findings import Diagnosis, Evidence, Experiment, Finding, Hypothesis, Remedy
from traindx.model.probes import Effect, Probing
from traindx.model.run import Run
from traindx.model.trials import arms_of, course_of
from traindx.report import probe_words, trial_words, words
from traindx.report.drawn_curves import first_onset, headline_curves, onset_of

_ACTIVE = re.compile(r"([\\`*_{}\[\]#!|~$])")
# an issue tracker would tell the person of that name
_MENTION = re.compile(r"@(?=\w)")


def render(run: Run, diagnosis: Diagnosis) -> str:
    """Return a diagnosis as Markdown."""
    lines = [
        f"# {words.STATUS[diagnosis.status]}: {prose(words.clean(run.name, 80))}",
        "",
        f"**{prose(diagnosis.summary)}**" if diagnosis.summary else "",
        "",
        *_curve_lines(run, diagnosis),
    ]
    for i, hypothesis in enumerate(diagnosis.root_causes):
        lines += _cause(run, hypothesis, i + 1)
    lines += _experiments(diagnosis.experiments)
    lines += _probes(diagnosis.probing)
    lines += _open(words.open_hypotheses(diagnosis))
    lines += _list("Questions", map(prose, words.questions(diagnosis)))
    lines += _list("Also seen", (_finding(f) for f in diagnosis.remarks))
    lines += _coverage(diagnosis)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def prose(text: object) -> str:
    """Return text in which nothing is Markdown or HTML."""
    escaped = words.clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    escaped = re.sub(r"^([-=+]|\d+[.)])", r"\\\1", _ACTIVE.sub(r"\\\1", escaped))
    return _MENTION.sub("@\u200b", escaped)


def code(text: object, limit: int = 200) -> str:
    """Return text as a code span that its own backticks cannot end."""
    inner = words.clean(text, limit).replace("|", "\\|") or " "
    longest = max((len(run) for run in re.findall(r"`+", inner)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{fence}{pad}{inner}{pad}{fence}"


def block(text: str, language: str = "") -> list[str]:
    """Return text as a code block that its own backticks cannot end."""
    inner = words.clean_block(text).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`{3,}", inner)), default=2)
    fence = "`" * (longest + 1)
    return [fence + language, *inner.split("\n"), fence]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table; its cells are Markdown already."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *body]


def _curve_lines(run: Run, diagnosis: Diagnosis) -> list[str]:
    curves = headline_curves(run)
    onset = first_onset(run, diagnosis, curves)
    lines = []
    for curve in curves:
        numbers = curve.take(curve.is_finite).values
        span = f"{curve.axis} {words.step(curve.steps[0])} to {words.step(curve.steps[-1])}"
        text = f"- {code(curve.name)}: {words.counted(len(curve), 'point')}, {span}"
        if len(numbers):
            least, most = words.number(float(numbers.min())), words.number(float(numbers.max()))
            text += f", from {least} to {most}, last {words.number(curve.last)}"
        if len(numbers) < len(curve):
            text += f", {len(curve) - len(numbers)} NaN or Inf"
        lines.append(text)
    if onset is not None:
        lines.append(f"- onset: {prose(onset.text)}")
    return [*lines, ""]


def _cause(run: Run, hypothesis: Hypothesis, rank: int) -> Iterator[str]:
    yield f"## {rank}. {prose(hypothesis.issue or hypothesis.cause)}"
    yield ""
    facts = [
        code(hypothesis.cause),
        f"severity **{hypothesis.severity.value}**",
        f"confidence **{words.confidence(hypothesis)}**",
    ]
    onset = onset_of(run, hypothesis)
    if onset is not None:
        facts.append(f"since {prose(onset.text)}")
    if hypothesis.location is not None:
        facts.append(code(f"{hypothesis.location.file}:{hypothesis.location.line}"))
    yield " · ".join(facts)
    yield from _list("Evidence", map(_fact, hypothesis.evidence), "###")
    yield from _list("Against", map(_fact, hypothesis.counter_evidence), "###")
    if hypothesis.consequences:
        names = " → ".join(code(c) for c in (hypothesis.cause, *hypothesis.consequences))
        yield from ("", f"Leads to: {names}", "")
    for i, remedy in enumerate(hypothesis.remedies):
        yield from _remedy(remedy, "Fix" if i == 0 else "Or")
    if words.band(hypothesis) == "fits" and hypothesis.confirm_by:
        yield from ("", f"To confirm: {prose(hypothesis.confirm_by)}", "")


def _fact(item: Evidence) -> str:
    return f"{prose(item.says)} ({code(words.place(item), 300)})"


def _remedy(remedy: Remedy, label: str) -> Iterator[str]:
    yield from ("", f"### {label}: {prose(remedy.change)}", "")
    for name, text in (
        ("Expect", remedy.expected_effect),
        ("Verify", remedy.verify),
        ("If it fails", remedy.if_it_fails),
    ):
        if text:
            yield f"- {name}: {prose(text)}"
    if remedy.patch:
        yield from ("", *block(remedy.patch, "diff"), "")


def _experiments(experiments: Sequence[Experiment]) -> list[str]:
    if not experiments:
        return []
    rows = []
    for experiment in experiments:
        courses = (prose(words.clean(course_of(arm), 400)) for arm in arms_of(experiment))
        on_top = ", ".join(code(name) for name in experiment.on_top_of)
        change = prose(trial_words.change_of(experiment)) + (
            f", on top of {on_top}" if on_top else ""
        )
        verdict = f"**{experiment.verdict.value}**"
        reason = prose(words.clean(experiment.reason, 400))
        rows.append((verdict, code(experiment.cause), change, *courses, reason))
    head = ("verdict", "cause", "change", "as it is", "changed", "why")
    return ["", "## Experiments", "", *table(head, rows), ""]


def _probes(probing: Probing | None) -> list[str]:
    if probing is None:
        return []
    lines = ["", "## Probes", ""]
    if probing.probes:
        rows = []
        for row in probe_words.rows_of(probing):
            cells = [prose(cell) for cell in row.cells]
            is_help = row.effect is Effect.HELPS
            rows.append((*cells[:-1], f"**{cells[-1]}**" if is_help else cells[-1]))
        lines += [*table(probe_words.HEAD, rows), ""]
    said = [f"Floors: {line}" for line in [probe_words.floors_line(probing)] if line]
    said += probing.remarks
    if probing.left_out:
        said.append(f"Not tried: {probe_words.left_out_line(probing)}")
    return [*lines, *(f"- {prose(line)}" for line in said), ""]


def _open(hypotheses: Sequence[Hypothesis]) -> list[str]:
    if not hypotheses:
        return []
    rows = [(f"{h.confidence:.2f}", code(h.cause), prose(h.confirm_by)) for h in hypotheses]
    head = ("confidence", "cause", "would decide")
    return ["", "## Open hypotheses", "", *table(head, rows), ""]


def _finding(finding: Finding) -> str:
    places = ", ".join(code(words.place(e), 300) for e in finding.evidence[:3])
    return f"{prose(finding.claim)} ({places})" if places else prose(finding.claim)


def _list(title: str, items: Iterable[str], level: str = "##") -> list[str]:
    lines = [f"- {item}" for item in items]
    return ["", f"{level} {title}", "", *lines, ""] if lines else []


def _coverage(diagnosis: Diagnosis) -> list[str]:
    said = [f"Checked: {words.counted(len(diagnosis.checked), 'detector')}"]
    if diagnosis.skipped:
        said.append(f"Not checked: {prose(words.unchecked(diagnosis.skipped))}")
    said += map(prose, words.reasons(diagnosis.skipped))
    lines = _list("What was checked", said)
    failed = (f"{code(f.detector)}: {prose(f.error)}" for f in diagnosis.failed)
    lines += _list("Crashed (says nothing about the run)", failed)
    read = []
    for artifact in diagnosis.artifacts:
        warned = "".join(f"; warning: {prose(w)}" for w in artifact.warnings)
        read.append(f"{code(artifact.path)} ({prose(artifact.reader)}){warned}")
    return lines + _list("Read", read)
