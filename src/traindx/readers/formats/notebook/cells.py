"""The cells of a notebook: their code as one program, their outputs as one text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindx.model.metric_names import canonical, is_epoch, is_measured, is_step, phase_of
from traindx.readers.columns import recognised
from traindx.readers.formats.notebook.html_tables import read_tables

MAX_CELLS = 5000
MAX_CODE = 1 << 20
MAX_OUTPUT = 16 << 20  # characters of one output
_MAGIC = re.compile(r"^(\s*)([%!?].*|.*\S\?{1,2}\s*)$")
_ASSIGNED = re.compile(r"^(\s*)([\w, ]+=\s*)([%!].*)$")
_OTHER_LANGUAGE = re.compile(
    r"^\s*%%(?:bash|sh|html|javascript|js|latex|markdown|writefile|script|perl|ruby|cython|sql|svg)"
)
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its number among all cells, its lines, and its outputs."""

    number: int
    code: tuple[str, ...]
    outputs: tuple[Mapping[str, Any], ...]


def code_cells(document: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield the code cells; a notebook of version 3 has them in worksheets."""
    sheets = document.get("worksheets")
    cells = document.get("cells")
    if not isinstance(cells, list) and isinstance(sheets, list):
        cells = [c for s in sheets[:100] if isinstance(s, dict) for c in _list(s.get("cells"))]
    for number, cell in enumerate(_list(cells)[:MAX_CELLS], 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            code = text_of(cell.get("source", cell.get("input", "")))
            outputs = tuple(o for o in _list(cell.get("outputs")) if isinstance(o, dict))
            yield Cell(number, tuple(code.split("\n")), outputs)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Return a text that may be written as a list of lines."""
    if isinstance(value, list):
        value = "".join(v for v in value if isinstance(v, str))
    return value.replace("\r\n", "\n")[:MAX_OUTPUT] if isinstance(value, str) else ""


def program(cells: Sequence[Cell]) -> str:
    """Return the code of all cells; a comment begins each, and magics are comments."""
    parts: list[str] = []
    size = 0
    for cell in cells:
        body = _plain_code(cell.code)
        size += sum(map(len, body))
        if size > MAX_CODE:
            parts.append("# the rest of the notebook was left out")
            break
        parts += [f"# cell {cell.number}", *body]
    return "\n".join(parts) + "\n"


def _plain_code(lines: Sequence[str]) -> list[str]:
    first = next((line for line in lines if line.strip()), "")
    if _OTHER_LANGUAGE.match(first):
        return [f"# {line}" for line in lines]
    plain = []
    is_continued = False
    for line in lines:
        assigned = _ASSIGNED.match(line)
        is_magic = _MAGIC.match(line) is not None and not line.lstrip().startswith("#")
        if assigned is not None:
            plain.append(f"{assigned[1]}{assigned[2]}None  # {assigned[3]}")
        elif is_magic or is_continued:
            indent = line[: len(line) - len(line.lstrip())]
            # a block may hold nothing else
            plain.append(f"{indent}pass  # {line.strip()}" if not is_continued else f"# {line}")
        else:
            plain.append(line)
        is_continued = (is_magic or is_continued) and line.rstrip().endswith("\\")
    return plain


def printed(output: Mapping[str, Any]) -> str:
    """Return what an output shows, as text."""
    kind = output.get("output_type")
    if kind == "stream":
        return text_of(output.get("text"))
    if kind in {"error", "pyerr"}:
        return _error(output)
    data = output.get("data", output)
    if not isinstance(data, dict):
        return ""
    html = text_of(data.get("text/html", data.get("html", "")))
    tables = [t for t in read_tables(html) if _reports(t[0])] if "<table" in html else []
    if tables:
        return "\n".join(_told(table) for table in tables)
    return text_of(data.get("text/plain", data.get("text", "")))


def _error(output: Mapping[str, Any]) -> str:
    trace = output.get("traceback")
    lines = [t for t in trace if isinstance(t, str)] if isinstance(trace, list) else []
    said = f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
    text = _COLOUR.sub("", "\n".join(lines))[:MAX_OUTPUT]
    return text if str(output.get("ename", "")) in text else f"{text}\n{said}".lstrip("\n")


def _reports(names: Sequence[str]) -> bool:
    """Tell whether a table shows the progress of training; most tables show data."""
    has_clock = any(is_epoch(n) or is_step(n) for n in names)
    return has_clock and bool(recognised(n for n in names if n))


def _phased(names: Sequence[str]) -> list[str]:
    """Say of metrics beside a validation loss that they were measured on the same data."""
    has_validation = any(phase_of(canonical(n)) == "val" for n in names)
    is_open = [is_measured(canonical(n)) and canonical(n) == canonical(n, "train") for n in names]
    return [
        f"valid_{n}" if has_validation and o and canonical(n) != canonical(n, "val") else n
        for n, o in zip(names, is_open, strict=True)
    ]


def _told(table: Sequence[Sequence[str]]) -> str:
    """Return the rows of a table as lines that a log would have."""
    names, rows = _phased(table[0]), table[1:]
    lines = []
    for row in rows:
        pairs = [(n, v) for n, v in zip(names, row, strict=False) if n and v]
        lines.append(" | ".join(f"{n.replace(' ', '_')}: {v}" for n, v in pairs))
    return "\n".join(lines)
