"""The consultation in words and in JSON: both rankings, what was struck out, what it took."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx import report
from traindx.agent.belief import Ruling
from traindx.agent.citations import Checked
from traindx.agent.schema import Cited
from traindx.agent.specialist import Consultation
from traindx.model.findings import Diagnosis
from traindx.model.run import Run
from traindx.report import markdown
from traindx.report.json import strict
from traindx.report.words import clean, counted

if TYPE_CHECKING:
    from rich.console import Console

RANKED = 5


def to_dict(consultation: Consultation) -> dict[str, Any]:
    """Return what stands under `agent` in the JSON of a diagnosis."""
    spent = consultation.spent
    answer = consultation.answer
    return {
        "answered": answer is not None,
        "note": consultation.note,
        "model": clean(consultation.model, 80),
        "summary": clean(answer.summary, 600) if answer else "",
        "causes": [_ruling_dict(r) for r in consultation.rulings],
        "engine": [
            {"cause": h.cause, "confidence": round(h.confidence, 3), "evidence": len(h.evidence)}
            for h in consultation.engine.hypotheses
        ],
        "disagreements": list(consultation.disagreements),
        "questions": [clean(q, 300) for q in answer.questions] if answer else [],
        "refused": list(consultation.refused),
        "turns": spent.turns,
        "tokens": {"input": spent.input_tokens, "output": spent.output_tokens},
        "cost_usd": round(spent.cost_usd, 4),
        "duration_s": round(spent.duration_s, 3),
    }


def _ruling_dict(ruling: Ruling) -> dict[str, Any]:
    return {
        "cause": clean(ruling.opinion.cause, 80),
        "said": round(ruling.opinion.confidence, 3),
        "confidence": round(ruling.confidence, 3),
        "evidence": [_checked_dict(c) for c in ruling.evidence],
        "against": [_checked_dict(c) for c in ruling.against],
        "limits": list(ruling.limits),
        "dropped": ruling.why_dropped or None,
        "reasoning": clean(ruling.opinion.reasoning, 1000),
    }


def _checked_dict(checked: Checked) -> dict[str, Any]:
    return {
        "says": clean(checked.cited.says, 300),
        "place": clean(checked.cited.place, 200),
        "quote": clean(checked.cited.quote, 300),
        "found": not checked.is_struck,
        "struck": checked.why_struck or None,
        "observed": checked.is_observed,
    }


def cost_line(consultation: Consultation) -> str:
    """Return in one line what the conversation took."""
    spent = consultation.spent
    tokens = f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out"
    turns = counted(spent.turns, "turn")
    return f"the specialist took {turns}, {tokens}, ${spent.cost_usd:.4f}, {spent.duration_s:.1f} s"


def lines_of(consultation: Consultation) -> list[str]:
    """Return the account as plain lines, each of them clean."""
    if consultation.answer is None:
        return [f"No second opinion: {consultation.note}."]
    lines = [f"Its summary, in its own words: {clean(consultation.answer.summary, 400)}"]
    lines += [f"Note: {consultation.note}."] if consultation.note else []
    lines += [f"Engine: {_ranking(consultation.engine)}", f"Specialist: {_own(consultation)}"]
    lines += [f"Disagreement: {line}" for line in consultation.disagreements]
    for ruling in consultation.rulings:
        lines += _ruling_lines(ruling)
    if consultation.refused:
        lines.append(f"It asked for {', '.join(consultation.refused)}: refused.")
    return lines


def _ranking(diagnosis: Diagnosis) -> str:
    listed = [
        f"{h.cause} {h.confidence:.2f} ({counted(len(h.evidence), 'piece')} of evidence)"
        for h in diagnosis.hypotheses[:RANKED]
    ]
    return ", ".join(listed) or "no cause"


def _own(consultation: Consultation) -> str:
    listed = []
    for ruling in sorted(consultation.rulings, key=lambda r: -r.opinion.confidence):
        found, given = len(ruling.verified), len(ruling.evidence)
        name, said = clean(ruling.opinion.cause, 60), ruling.opinion.confidence
        listed.append(
            f"{name} {said:.2f} (counts as {ruling.confidence:.2f}; {found} of {given} found)"
        )
    return ", ".join(listed) or "no cause"


def _ruling_lines(ruling: Ruling) -> Iterator[str]:
    name = clean(ruling.opinion.cause, 60)
    if ruling.why_dropped:
        yield f"{name}: dropped, {ruling.why_dropped}."
    for limit in ruling.limits:
        yield f"{name}: {limit}."
    for checked in ruling.struck:
        yield f"{name}: struck out: {_said(checked.cited)}; {checked.why_struck}."
    if ruling.opinion.reasoning:
        yield f"{name}, its reasoning (not checked): {clean(ruling.opinion.reasoning, 600)}"


def _said(cited: Cited) -> str:
    return f"“{clean(cited.says or cited.quote, 200)}” ({clean(cited.place, 120)})"


def as_markdown(consultation: Consultation) -> str:
    """Return the account as a section of a Markdown report."""
    rows = [f"- {markdown.prose(line)}" for line in lines_of(consultation)]
    return "\n".join(["", "## The specialist's account", "", *rows, ""])


def in_page(page: str, consultation: Consultation) -> str:
    """Return an HTML report with the account at the end of what is read."""
    rows = "".join(f"<li>{escape(line)}</li>" for line in lines_of(consultation))
    section = f"<section><h2>The specialist's account</h2><ul>{rows}</ul></section>\n"
    head, mark, tail = page.rpartition("</main>")
    return f"{head}{section}{mark}{tail}" if mark else page + section


def print_account(consultation: Consultation, console: Console) -> None:
    """Print the account on a terminal, below the report."""
    from rich.padding import Padding
    from rich.text import Text

    from traindx.report.terminal import show

    show(console, Text("The specialist's account", "bold"))
    for line in lines_of(consultation):
        show(console, Padding(Text(line), (0, 0, 0, 2)))


def render(format_name: str, run: Run, diagnosis: Diagnosis, consultation: Consultation) -> str:
    """Return a report in a format, with the account where the format has room for it."""
    text = report.render(format_name, run, diagnosis)
    return _with_account(format_name, text, consultation)


def _with_account(format_name: str, text: str, consultation: Consultation) -> str:
    if format_name == "json":
        told = {**json.loads(text), "agent": strict(to_dict(consultation))}
        return json.dumps(told, indent=2, allow_nan=False)
    if format_name == "markdown":
        return text + as_markdown(consultation)
    return in_page(text, consultation) if format_name == "html" else text


def add_to_folder(folder: str, consultation: Consultation) -> None:
    """Add the account to the reports that were written into a folder."""
    names = {"json": "diagnosis.json", "markdown": "report.md", "html": "report.html"}
    for format_name, name in names.items():
        path = Path(folder, name)
        text = _with_account(format_name, path.read_text(encoding="utf-8"), consultation)
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8", newline="\n")
