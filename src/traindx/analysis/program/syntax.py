"""One source file: its tree, what its names mean, and who encloses whom."""

from __future__ import annotations

import ast
import re
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from traindx.model.findings import Evidence, Location, cite_source

Node = TypeVar("Node", bound=ast.AST)

Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # where statements hold statements
MAX_SOURCE = 2_000_000  # characters; a longer file is data, not a training script
TEST_LIBRARIES = frozenset({"pytest", "unittest", "hypothesis"})
OTHER_FRAMEWORKS = frozenset(
    {"tensorflow", "keras", "jax", "flax", "paddle", "mxnet", "mlx", "optax", "haiku", "equinox"}
)


@dataclass(frozen=True, eq=False)
class Module:
    """A file, parsed when it is first asked for its tree.

    `root` is the folder that a patch's paths are relative to, where the path is not so itself.
    """

    path: str
    text: str
    root: str = ""

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree; an empty one where the text is no Python that can be read."""
        return self._parsed or ast.Module([], [])

    @cached_property
    def _parsed(self) -> ast.Module | None:
        if len(self.text) > MAX_SOURCE:
            return None
        return _tree(self.text) or _tree(_modernised(self.text))

    @property
    def is_parsed(self) -> bool:
        """Tell whether anything has asked for the tree by now."""
        return "tree" in vars(self)

    @property
    def is_python(self) -> bool:
        """Tell whether the file parses."""
        return self._parsed is not None

    @cached_property
    def aliases(self) -> dict[str, str]:
        """The dotted name that each local name was imported as."""
        return _aliases(self.tree)

    @property
    def name(self) -> str:
        """The name under which another file would import this one."""
        stem = self.path.replace("\\", "/").rsplit("/", 1)[-1]
        return stem.removesuffix(".py")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")  # as the parser counts; splitlines breaks at form feeds too

    @cached_property
    def roots(self) -> frozenset[str]:
        """The packages that the file imports from."""
        return frozenset(name.split(".", 1)[0] for name in self.aliases.values())

    @cached_property
    def is_test(self) -> bool:
        """Tell whether the file tests code: odd training loops are what tests are made of."""
        is_named = self.name.startswith("test_") or self.name.endswith("_test")
        is_internal = any(n.startswith("torch.testing._internal") for n in self.aliases.values())
        is_named = is_named or self.name == "conftest"
        return is_named or is_internal or bool(self.roots & TEST_LIBRARIES)

    @cached_property
    def is_foreign(self) -> bool:
        """Tell whether the file trains with another framework than torch."""
        return bool(self.roots & OTHER_FRAMEWORKS) and "torch" not in self.roots

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        found: dict[ast.AST, ast.AST] = {}
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            for child in ast.iter_child_nodes(node):
                found[child] = node
                waiting.append(child)
        return found

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = {}
        for node in self.parents:
            found.setdefault(type(node), []).append(node)
        for nodes in found.values():
            nodes.sort(key=_position)
        return found

    def nodes(self, kind: type[Node]) -> list[Node]:
        """Return every node of a type in the file, in the order of the text."""
        return self._by_type.get(kind, [])  # type: ignore[return-value]

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Every function by its dotted name inside the file: `train`, `Net.forward`."""
        found: list[Function] = [*self.nodes(ast.FunctionDef), *self.nodes(ast.AsyncFunctionDef)]
        return {self.dotted(n): n for n in found}

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        return {n.name: n for n in self.nodes(ast.ClassDef)}

    def enclosing(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        while (above := self.parents.get(node)) is not None:
            yield above
            node = above

    def function_of(self, node: ast.AST) -> Function | None:
        return next((n for n in self.enclosing(node) if isinstance(n, Function)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return next((n for n in self.enclosing(node) if isinstance(n, ast.ClassDef)), None)

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        """Return the statement in which a node stands; a statement is its own."""
        around = (node, *self.enclosing(node))
        return next((n for n in around if isinstance(n, ast.stmt)), None)

    def location(self, node: ast.AST) -> Location:
        """Return the place of a node, as a finding gives it."""
        first = int(getattr(node, "lineno", 1))
        return Location(self.path, first, int(getattr(node, "end_lineno", None) or first))

    def cite(self, node: ast.AST, says: str) -> Evidence:
        """Return what a node shows as evidence that can be looked up."""
        return cite_source(self.path, int(getattr(node, "lineno", 1)), says)

    def source(self, node: ast.expr) -> str:
        """Return an expression as it is written."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        if node.end_col_offset is None or last >= len(self.lines):
            return ast.unparse(node)
        lines = [line.encode() for line in self.lines[first : last + 1]]  # columns count bytes
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"\n".join(lines).decode(errors="replace")

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
        if within is None or within is self.tree:
            yield from self._all_calls
            return
        for node in ast.walk(within):
            if isinstance(node, ast.Call):
                yield node, self.qualified(node.func) or ""

    @cached_property
    def _all_calls(self) -> list[tuple[ast.Call, str]]:
        return [(node, self.qualified(node.func) or "") for node in self.nodes(ast.Call)]


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not ours
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_OLD_KEYWORD = re.compile(r"\basync(?=\s*=\s*(?:True|False)\b)")
_OLD_EXCEPT = re.compile(r"^(\s*except [\w.]+), (\w+):", re.MULTILINE)
_OLD_PRINT = re.compile(r"^(\s*)print[ \t](?!\s*[=(>])(.*?)(\s*)$", re.MULTILINE)


def _modernised(text: str) -> str:
    """Return a file for an older Python as one that parses: `cuda(async=True)`, `print x`.

    Lines stay where they are, and so do the columns of all that is not printed.
    """
    text = _OLD_KEYWORD.sub("asynk", text)
    text = _OLD_EXCEPT.sub(r"\1 as \2:", text)
    return _OLD_PRINT.sub(r"\1print(\2)\3", text)


def _aliases(tree: ast.Module) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for node in _statements(tree):
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


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements of a file, outer ones first; expressions are not walked."""
    waiting: deque[ast.AST] = deque(tree.body)
    while waiting:
        node = waiting.popleft()
        yield node
        for block in BLOCKS:
            waiting.extend(getattr(node, block, ()))


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
