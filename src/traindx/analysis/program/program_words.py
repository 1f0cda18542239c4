"""The words that a program uses: names of all kinds, and what is written in its texts.

A rule that only wants to know what a program is about (a tokenizer, a variational autoencoder, a
part that is frozen on purpose) asks for these, and only to say less.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from traindx.analysis.program.project import Project, project_of
from traindx.model.run import Run


def mentions(run: Run, *parts: str) -> bool:
    """Tell whether a name or text of the program contains one of the words, in any case."""
    wanted = [part.lower() for part in parts]
    return any(part in word for word in _vocabulary(project_of(run)) for part in wanted)


def writes_minus_infinity(run: Run) -> bool:
    """Tell whether a program writes minus infinity, as where it masks values."""
    if any(word in ("-inf", "finfo") for word in _vocabulary(project_of(run))):
        return True
    minus = (
        node.operand
        for module in project_of(run).modules
        for node in module.nodes(ast.UnaryOp)
        if isinstance(node.op, ast.USub)
    )
    return any("inf" in _words(node) for value in minus for node in ast.walk(value))


@lru_cache(maxsize=4)
def _vocabulary(project: Project) -> frozenset[str]:
    nodes = (n for m in project.modules for n in ast.walk(m.tree))
    return frozenset(word.lower() for node in nodes for word in _words(node))


def _words(node: ast.AST) -> Iterator[str]:
    fields = ("id", "attr", "arg", "name", "asname", "module")
    found = (getattr(node, field, None) for field in fields)
    yield from (word for word in found if isinstance(word, str))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
