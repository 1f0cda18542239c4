"""A program's text and its syntax tree, and edits that leave the rest of the text as it was."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Edit:
    """Text that takes the place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Source:
    """The text of one file with its tree."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Return every node in the order of the text."""
        found = [n for n in ast.walk(self.tree) if hasattr(n, "lineno")]
        return tuple(sorted(found, key=lambda n: (n.lineno, n.col_offset)))  # type: ignore[attr-defined]

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {c: p for p in ast.walk(self.tree) for c in ast.iter_child_nodes(p)}

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines(keepends=True)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line))
        return starts

    def offset(self, line: int, column: int) -> int:
        """Return the place of a line (from 1) and a column (in bytes, as `ast` has it)."""
        before = self.lines[line - 1].encode()[:column].decode() if column else ""
        return self._starts[line - 1] + len(before)

    def span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.stmt | ast.expr | ast.keyword | ast.arg | ast.alias)
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self.offset(node.lineno, node.col_offset)
        return start, self.offset(node.end_lineno, node.end_col_offset)

    def code(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def indent(self, statement: ast.stmt) -> str:
        line = self.lines[statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def line_at(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def of_type(self, *kinds: type) -> Iterator[ast.AST]:
        return (n for n in self.nodes if isinstance(n, kinds))

    def calls(self) -> list[ast.Call]:
        return [n for n in self.nodes if isinstance(n, ast.Call)]

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement around a node."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def around(self, node: ast.AST, *kinds: type) -> ast.AST | None:
        """Return the innermost node of some kind that encloses a node."""
        current = self.parents.get(node)
        while current is not None and not isinstance(current, kinds):
            current = self.parents.get(current)
        return current

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the function around a node, or the module."""
        return self.around(node, ast.FunctionDef, ast.AsyncFunctionDef) or self.tree

    def siblings(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the block that a statement stands in."""
        parent = self.parents[statement]
        for _, value in ast.iter_fields(parent):
            if isinstance(value, list) and statement in value:
                return value
        return [statement]

    # Edits

    def replace(self, node: ast.AST, text: str) -> Edit:
        return Edit(*self.span(node), text)

    def wrap(self, node: ast.AST, before: str, after: str) -> Edit:
        return self.replace(node, f"{before}{self.code(node)}{after}")

    def before(self, statement: ast.stmt, *lines: str) -> Edit:
        """Return an edit that puts lines in front of a statement, indented as it is."""
        first = min(
            [statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))]
        )
        at = self._starts[first - 1]
        return Edit(at, at, self._block(statement, lines))

    def after(self, statement: ast.stmt, *lines: str) -> Edit:
        assert statement.end_lineno is not None
        at = self._starts[statement.end_lineno]
        gap = "" if self.text[:at].endswith("\n") else "\n"
        return Edit(at, at, gap + self._block(statement, lines))

    def at_top(self, *lines: str) -> Edit:
        """Return an edit that puts lines below the imports."""
        imports = [s for s in self.tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
        if not imports:
            return self.before(self.tree.body[0], *lines)
        edit = self.after(imports[-1], *lines)
        return Edit(edit.start, edit.end, f"\n{edit.text}")

    def drop(self, statement: ast.stmt) -> Edit:
        """Return an edit that removes a statement with its lines."""
        assert statement.end_lineno is not None
        start, end = self._starts[statement.lineno - 1], self._starts[statement.end_lineno]
        is_alone = self.text[start:end].strip() == self.code(statement).strip()
        if len(self.siblings(statement)) > 1 and is_alone:
            return Edit(start, end, "")
        return self.replace(statement, "pass")

    def dedent(self, block: ast.With) -> Edit:
        """Return an edit that takes away a `with` and leaves what it holds."""
        assert block.end_lineno is not None
        inner = "".join(self.lines[block.body[0].lineno - 1 : block.end_lineno])
        step = len(self.indent(block.body[0])) - len(self.indent(block))
        text = "".join(line[step:] if line.strip() else line for line in inner.splitlines(True))
        return Edit(self._starts[block.lineno - 1], self._starts[block.end_lineno], text)

    def _block(self, statement: ast.stmt, lines: Sequence[str]) -> str:
        indent = self.indent(statement)
        return "".join(f"{indent}{line}\n" for line in lines)


def apply(source: Source, edits: Sequence[Edit], at: Edit | ast.AST) -> tuple[str, int]:
    """Return the text with the edits made, and the line that `at` then stands on."""
    ordered = sorted(edits, key=lambda e: (e.start, e.end))
    if any(a.end > b.start for a, b in itertools.pairwise(ordered)):
        raise ValueError("edits overlap")
    parts: list[str] = []
    here = length = mark = 0
    for edit in ordered:
        parts += [source.text[here : edit.start], edit.text]
        length += edit.start - here
        if edit is at:
            mark = length + len(edit.text) - len(edit.text.lstrip("\n"))
        length += len(edit.text)
        here = edit.end
    if not isinstance(at, Edit):
        mark = _moved(source.span(at)[0], ordered)
    text = "".join([*parts, source.text[here:]])
    return text, text.count("\n", 0, mark) + 1


def _moved(offset: int, edits: Sequence[Edit]) -> int:
    """Return where a place of the old text is in the new one."""
    inside = [e for e in edits if e.start <= offset < e.end]
    offset = inside[0].start if inside else offset
    return offset + sum(len(e.text) - (e.end - e.start) for e in edits if e.end <= offset)
