"""Takes a class out of the user's files, with what it refers to and nothing else of the script."""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib.util
import symtable
import sys
from math import isfinite
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from . import places

MAX_NAMES = 300
_SIMPLE = (bool, int, float, complex, str, bytes, type(None))
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class CannotExtract(Exception):
    """What a class needs cannot be written down on its own."""


class Extraction:
    """Pieces of source in the order in which they can run."""

    def __init__(self) -> None:
        self.imports: list[str] = []
        self.pieces: list[str] = []
        self.has_future = False
        self._done: dict[str, Any] = {}  # what a name stands for
        self._files: dict[str, _File] = {}

    def file(self, module: Any) -> _File:
        path = getattr(module, "__file__", None) or ""
        if path not in self._files:
            if not path or not places.is_user_file(path):
                raise CannotExtract("not a file of the user's")
            self._files[path] = _File(module, path)
            self.has_future |= self._files[path].has_future
        return self._files[path]

    def add(self, name: str, file: _File) -> None:
        """Add what a name stands for in a file, and before it what that refers to."""
        value = vars(file.module).get(name)
        if name in self._done:
            if self._done[name] is not value:
                raise CannotExtract("a name stands for two things")
            return
        if len(self._done) > MAX_NAMES:
            raise CannotExtract("too much")
        self._done[name] = value
        self._define(name, file)

    def _define(self, name: str, file: _File) -> None:
        node = file.top.get(name)
        if node is None:
            raise CannotExtract(f"{name} is not defined")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(name, node, file)
        elif isinstance(node, _DEFINITIONS):
            self.add_all(file.source(node), file)
            self.pieces.append(file.source(node))
        else:
            self._constant(name, node, file)

    def add_all(self, source: str, file: _File) -> None:
        """Add everything at the top of a file that a piece of source refers to."""
        for name in sorted(_globals(symtable.symtable(source, "piece", "exec"))):
            if name in file.top:
                self.add(name, file)
            elif not hasattr(builtins, name) and not name.startswith("__"):
                raise CannotExtract(f"{name} is not defined")

    def _import(self, name: str, node: ast.Import | ast.ImportFrom, file: _File) -> None:
        alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
        origin = alias.name if isinstance(node, ast.Import) else (node.module or "")
        level = 0 if isinstance(node, ast.Import) else node.level
        if level == 0 and _is_everywhere(origin):
            if isinstance(node, ast.Import):
                text = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
            else:
                text = f"from {origin} import {alias.name}"
                text += f" as {alias.asname}" if alias.asname else ""
            if text not in self.imports:
                self.imports.append(text)
            return
        if isinstance(node, ast.Import) or alias.asname not in (None, alias.name):
            raise CannotExtract(f"{name} is of another package")
        package = getattr(file.module, "__package__", None) or ""
        full = importlib.util.resolve_name("." * level + origin, package) if level else origin
        other = sys.modules.get(full)
        if other is None or isinstance(getattr(other, alias.name, None), ModuleType):
            raise CannotExtract(f"{name} is of another package")
        self._define(name, self.file(other))

    def _constant(self, name: str, node: ast.stmt, file: _File) -> None:
        """Write down the value that a name has now, for it may have changed since."""
        value = vars(file.module).get(name, self)
        text = literal(value)
        if text:
            self.pieces.append(f"{name} = {text}")
            if text.startswith("argparse."):
                self.imports.append("import argparse")
            return
        if not isinstance(node, ast.Assign) or not self._is_plain(node.value, file):
            raise CannotExtract(f"{name} cannot be written down")
        self.add_all(file.source(node), file)
        self.pieces.append(file.source(node))

    def _is_plain(self, value: ast.expr, file: _File) -> bool:
        """Say whether an expression only makes objects of torch or of classes that are taken."""
        for call in (node for node in ast.walk(value) if isinstance(node, ast.Call)):
            root = call.func
            while isinstance(root, ast.Attribute):
                root = root.value
            if not isinstance(root, ast.Name):
                return False
            found = vars(file.module).get(root.id)
            module = found.__name__ if isinstance(found, ModuleType) else _module_of(found)
            is_own_class = isinstance(found, type) and isinstance(
                file.top.get(root.id), (ast.ClassDef, ast.ImportFrom)
            )
            if not is_own_class and module.split(".")[0] not in {"torch", "builtins"}:
                return False
        return True


class _File:
    """A file of the user's: its module, and what stands at its top level by name."""

    def __init__(self, module: Any, path: str) -> None:
        self.module, self.path = module, path
        self.text = Path(path).read_text(encoding="utf-8")
        self.lines = self.text.splitlines()
        self.tree = ast.parse(self.text)
        self.top: dict[str, ast.stmt] = {}
        self.has_future = False
        self._collect(self.tree.body)

    def _collect(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self.has_future = True
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    self.top[alias.asname or alias.name.split(".")[0]] = node
            elif isinstance(node, _DEFINITIONS):
                self.top[node.name] = node
            elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
                for block in ("body", "orelse", "finalbody"):
                    self._collect(getattr(node, block, []))
            else:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        self.top[inner.id] = node

    def source(self, node: Any) -> str:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        lines = self.lines[first - 1 : node.end_lineno]
        indent = len(lines[0]) - len(lines[0].lstrip())
        return "\n".join(line[indent:] for line in lines)


def literal(value: Any, depth: int = 3) -> str:
    """Return source that makes a plain value; an empty text for all others."""
    if type(value) in _SIMPLE:
        if isinstance(value, float) and not isfinite(value):
            return f"float({str(value)!r})"
        return repr(value) if len(repr(value)) < 2000 else ""
    if type(value) in (torch.device, torch.dtype):
        return f"torch.device({str(value)!r})" if type(value) is torch.device else str(value)
    if depth == 0:
        return ""
    if type(value) in (list, tuple):
        parts = [literal(item, depth - 1) for item in value]
        if not all(parts):
            return ""
        inner = ", ".join(parts) + ("," if type(value) is tuple and len(parts) == 1 else "")
        return f"[{inner}]" if type(value) is list else f"({inner})"
    if type(value) is dict:
        pairs = [(literal(k, 1), literal(v, depth - 1)) for k, v in value.items()]
        return "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}" if all(map(all, pairs)) else ""
    if type(value) in (argparse.Namespace, SimpleNamespace):
        inner = literal(vars(value), depth)
        return f"argparse.Namespace(**{inner})" if inner else ""
    return ""


def _module_of(value: Any) -> str:
    return str(getattr(value, "__module__", "") or "")


def _globals(table: symtable.SymbolTable) -> set[str]:
    """Return the names that a piece of source takes from around it."""
    symbols = table.get_symbols()
    is_outermost = table.get_type() == "module"
    found = {s.get_name() for s in symbols if s.is_referenced() and (is_outermost or s.is_global())}
    for inner in table.get_children():
        found |= _globals(inner)
    return found - {s.get_name() for s in symbols if is_outermost and s.is_assigned()}


def _is_everywhere(name: str) -> bool:
    """Say whether a package comes with Python, or is torch."""
    root = name.split(".", maxsplit=1)[0]
    known = getattr(sys, "stdlib_module_names", None)
    if root == "torch" or root in sys.builtin_module_names:
        return True
    if known is not None:
        return root in known
    origin = getattr(sys.modules.get(root), "__file__", None) or ""
    return "site-packages" not in origin and not places.is_user_file(origin)
