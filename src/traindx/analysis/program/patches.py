"""The smallest change to a file, as a unified diff that applies with `git apply`.

Edits are made on the text by the positions of the syntax tree: formatting and comments stay.
"""

from __future__ import annotations

import ast
import difflib
import os
from dataclasses import dataclass

from traindx.analysis.program.syntax import Module

UNENDED = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of a file, in lines and bytes as the syntax tree counts them, and its new text."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


def replacing(node: ast.expr | ast.stmt, text: str) -> Edit:
    """Replace what a node covers."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Edit(node.lineno, node.col_offset, end_line, end_column, text)


def inserting_after(module: Module, node: ast.stmt, text: str) -> Edit:
    """Insert statements on lines of their own after a statement, indented like it."""
    last = node.end_lineno or node.lineno
    return _new_lines(module, node, last + 1, text)


def inserting_before(module: Module, node: ast.stmt, text: str) -> Edit:
    """Insert statements on lines of their own before a statement, indented like it."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return _new_lines(module, node, first, text)


def _new_lines(module: Module, like: ast.stmt, at: int, text: str) -> Edit:
    line = module.lines[like.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    body = "".join(f"{indent}{part}\n" if part else "\n" for part in text.split("\n"))
    return Edit(at, 0, at, 0, body)


def removing(module: Module, node: ast.stmt) -> Edit:
    """Remove a statement that stands on lines of its own."""
    return Edit(node.lineno, 0, (node.end_lineno or node.lineno) + 1, 0, "")


def diff(module: Module, *edits: Edit) -> str | None:
    """Return the unified diff that makes the edits; None where it would not parse or not apply."""
    before = _lines(module.text)
    lines = [line.encode() for line in before]
    for edit in sorted(edits, key=lambda e: (e.line, e.column), reverse=True):
        lines = _apply(lines, edit)
    after = b"".join(lines).decode()
    try:
        ast.parse(after)
    except (SyntaxError, ValueError):
        return None
    path = _named(module)
    if path is None:
        return None
    changed = difflib.unified_diff(before, _lines(after), f"a/{path}", f"b/{path}")
    marked = (line if line.endswith("\n") else f"{line}\n{UNENDED}\n" for line in changed)
    return "".join(marked) or None


def _named(module: Module) -> str | None:
    """Return the path for the header; None where a reader of the patch might take another file."""
    path = module.path.removeprefix(module.root)
    path = path.replace(os.sep, "/").lstrip("/")
    return path if path.isprintable() and not {'"', "\\"} & set(path) else None


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    ended = [part + "\n" for part in parts[:-1]]
    return [*ended, parts[-1]] if parts[-1] else ended


def _byte_lines(text: bytes) -> list[bytes]:
    return [line.encode() for line in _lines(text.decode())]


def _apply(lines: list[bytes], edit: Edit) -> list[bytes]:
    first = lines[edit.line - 1] if edit.line <= len(lines) else b""
    last = lines[edit.end_line - 1] if edit.end_line <= len(lines) else b""
    changed = first[: edit.column] + edit.text.encode() + last[edit.end_column :]
    return [
        *lines[: edit.line - 1],
        *_byte_lines(changed),
        *lines[edit.end_line :],
    ]


def within(module: Module, node: ast.stmt, header: str) -> Edit | None:
    """Put a statement into a block of its own; None where a text inside it would change."""
    strings = (
        n for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    )
    if any((n.end_lineno or n.lineno) > n.lineno for n in strings):
        return None
    last = node.end_lineno or node.lineno
    lines = module.lines[node.lineno - 1 : last]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    unit = "\t" if indent.startswith("\t") else "    "
    moved = "".join(f"{unit}{line}\n" if line.strip() else f"{line}\n" for line in lines)
    return Edit(node.lineno, 0, last + 1, 0, f"{indent}{header}\n{moved}")
