"""A report as sections of prose, tables and figures, written as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .7rem; text-align: left }
td.number { text-align: right; font-variant-numeric: tabular-nums }
p { white-space: pre-wrap }
figure { margin: 1rem 0 } svg { max-width: 100%; height: auto }
"""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head; the first column names, the others tell."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing, and the words that stand for it where it cannot be seen."""

    name: str
    svg: str
    says: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    title: str
    parts: tuple[str | Table | Figure, ...] = field(default_factory=tuple)


def named_apart(section: Section, word: str) -> Section:
    """Return a section whose figures have a word before their names."""
    parts = (
        replace(p, name=f"{word}-{p.name}") if isinstance(p, Figure) else p for p in section.parts
    )
    return replace(section, parts=tuple(parts))


def to_markdown(title: str, sections: Sequence[Section]) -> str:
    """Return the report as Markdown; figures are files beside it."""
    lines = [f"# {title}", ""]
    for section in sections:
        lines += [f"## {section.title}", ""]
        for part in section.parts:
            lines += [*_markdown(part), ""]
    return "\n".join(lines)


def _markdown(part: str | Table | Figure) -> list[str]:
    if isinstance(part, str):
        return [part]
    if isinstance(part, Figure):
        return [f"![{part.says}]({part.name}.svg)"]
    rows = [part.head, tuple("---" for _ in part.head), *part.rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


def to_html(title: str, sections: Sequence[Section]) -> str:
    """Return the report as one page that needs nothing else."""
    body = "".join(
        f"<h2>{escape(s.title)}</h2>{''.join(_html(p) for p in s.parts)}" for s in sections
    )
    head = f"<meta charset=utf-8><title>{escape(title)}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body><h1>{escape(title)}</h1>{body}"


def _html(part: str | Table | Figure) -> str:
    if isinstance(part, str):
        if part.startswith("#"):
            return f"<h3>{escape(part.lstrip('# '))}</h3>"
        return f"<p>{escape(part)}</p>"
    if isinstance(part, Figure):
        return f"<figure role=img aria-label='{escape(part.says, quote=True)}'>{part.svg}</figure>"
    head = "".join(f"<th>{escape(cell)}</th>" for cell in part.head)
    rows = "".join(f"<tr>{''.join(_cell(c) for c in row)}</tr>" for row in part.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(text: str) -> str:
    is_number = text[:1].isdigit() or text[:2] == "0."
    return f"<td{' class=number' if is_number else ''}>{escape(text)}</td>"
