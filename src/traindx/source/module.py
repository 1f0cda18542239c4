"""One source file: its tree, what its names mean, and who encloses whom."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from traindx.model import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
MAX_SOURCE = 2_000_000  # characters; a longer file is data, not a training script


@dataclass(frozen=True, eq=False)
class Module:
    """A parsed file; `aliases` maps a local name to the dotted name that it was imported as."""

    path: str
    text: str
    tree: ast.Module
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name under which another file would import this one."""
        stem = self.path.replace("\\", "/").rsplit("/", 1)[-1]
        return stem.removesuffix(".py")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")  # as the parser counts; splitlines breaks at form feeds too

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Every function by its dotted name inside the file: `train`, `Net.forward`."""
        return {self.dotted(n): n for n in ast.walk(self.tree) if isinstance(n, Function)}

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        return {n.name: n for n in ast.walk(self.tree) if isinstance(n, ast.ClassDef)}

    def enclosing(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        while (above := self.parents.get(node)) is not None:
            yield above
            node = above

    def function_of(self, node: ast.AST) -> Function | None:
        return next((n for n in self.enclosing(node) if isinstance(n, Function)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return next((n for n in self.enclosing(node) if isinstance(n, ast.ClassDef)), None)

    def dotted(self, node: Function | ast.ClassDef) -> str:
        above = [n.name for n in self.enclosing(node) if isinstance(n, (*_NAMED,))]
        return ".".join([*reversed(above), node.name])

    def qualified(self, node: ast.AST) -> str | None:
        """Return the dotted name of an expression, through imports: `F.relu` is `torch…relu`.

        A name that was not imported stands for itself, `self.fc` for `self.fc`.
        """
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            left = self.qualified(node.value)
            return None if left is None else f"{left}.{node.attr}"
        return None

    def calls(self, within: ast.AST | None = None) -> Iterator[tuple[ast.Call, str]]:
        """Yield every call with the dotted name of what is called, where it has one."""
        for node in ast.walk(within or self.tree):
            if isinstance(node, ast.Call):
                yield node, self.qualified(node.func) or ""


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def parse(source: Source) -> Module | None:
    """Parse a file; None where it is no Python that can be read."""
    if len(source.text) > MAX_SOURCE:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not ours
            tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Module(source.path, source.text, tree, _aliases(tree))


def _aliases(tree: ast.Module) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.asname:
                    aliases[item.asname] = item.name
                else:
                    aliases[item.name.split(".")[0]] = item.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for item in node.names:
                prefix = "." * node.level + (node.module or "")
                aliases[item.asname or item.name] = f"{prefix}.{item.name}".lstrip(".")
    return aliases


def key_of(node: ast.AST) -> str | None:
    """Return the name a value is kept under: `opt`, `self.opt`, `self.opts[0]` as `self.opts`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        left = key_of(node.value)
        return None if left is None else f"{left}.{node.attr}"
    if isinstance(node, ast.Subscript):
        return key_of(node.value)
    return None


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """Return an argument by keyword, or by position where that is given."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and position < len(call.args):
        found = call.args[position]
        return None if isinstance(found, ast.Starred) else found
    return None


def literal(node: ast.AST | None) -> object:
    """Return the value of a literal, else None; nothing is evaluated but literals."""
    if node is None:
        return None
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value
