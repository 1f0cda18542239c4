"""Old names of a library: where a file still calls them, and the patch that renames the calls."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from traindx.analysis.program.patches import Edit, diff, replacing
from traindx.analysis.program.syntax import Module
from traindx.model.findings import Evidence, Location

VERSIONS = ("version", "hasattr", "torch_")  # of a condition that asks which torch there is


@dataclass(frozen=True, slots=True)
class DeprecatedCall:
    """A call of an old name."""

    module: Module
    call: ast.Call
    name: str

    @property
    def location(self) -> Location:
        return self.module.location(self.call)

    def cite(self, says: str) -> Evidence:
        return self.module.cite(self.call, says)


@dataclass(frozen=True, slots=True)
class Rename:
    """The new dotted name of a function, and the argument that it takes before the others.

    `keyword` is what the first argument of before has to be called from now on.
    """

    name: str
    first: str
    keyword: str = ""


def uses(module: Module, old: Collection[str]) -> list[DeprecatedCall]:
    """Return the calls of old names, without those that are only a fallback for an old version."""
    return [
        DeprecatedCall(module, call, name)
        for call, name in module.calls()
        if name in old and not _is_fallback(module, call)
    ]


def _is_fallback(module: Module, call: ast.Call) -> bool:
    """Tell whether the old name is only for an old version: in a `try`, or by a condition."""
    for node in module.enclosing(call):
        if isinstance(node, (ast.Try, ast.ExceptHandler)):
            return True
        if isinstance(node, (ast.If, ast.IfExp)):
            text = ast.unparse(node.test).lower()
            if any(word in text for word in VERSIONS):
                return True
    return False


def renamed(module: Module, found: Sequence[tuple[DeprecatedCall, Rename]]) -> str | None:
    """Return the patch that calls the new names; None where it would need more than that."""
    edits: list[Edit] = []
    for use, new in found:
        call = use.call
        if len(call.args) > 1 and new.keyword:
            return None
        line, column = call.func.end_lineno or call.lineno, (call.func.end_col_offset or 0) + 1
        more = ", " if call.args or call.keywords else ""
        keyword = f"{new.keyword}=" if call.args and new.keyword else ""
        edits.append(Edit(line, column, line, column, f"{new.first}{more}{keyword}"))
        if isinstance(call.func, ast.Attribute):
            edits.append(replacing(call.func, new.name))
    changed = _imports(module, {use.name: new.name for use, new in found})
    root = next(iter(new.name.split(".")[0] for _, new in found), "")
    if changed is None or (module.aliases.get(root) != root and not changed):
        return None
    return diff(module, *edits, *changed)


def _imports(module: Module, names: dict[str, str]) -> list[Edit] | None:
    """The imports renamed; None where one of them brings in something else as well."""
    edits = []
    homes = {old.rsplit(".", 1)[0] for old in names}
    for node in module.nodes(ast.ImportFrom):
        if node.module not in homes:
            continue
        new = {names.get(f"{node.module}.{a.name}", "") for a in node.names}
        places = {n.rsplit(".", 1)[0] for n in new}
        if "" in new or len(places) != 1 or any(a.asname for a in node.names):
            return None
        listed = ", ".join(a.name for a in node.names)
        edits.append(replacing(node, f"from {places.pop()} import {listed}"))
    return edits
