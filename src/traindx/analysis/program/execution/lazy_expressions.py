"""Generator expressions that run where they are gone over, and not where they stand."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import expressions
from traindx.analysis.program.execution.values import FunctionValue, Generator, Scope, Value

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine


def later(node: ast.GeneratorExp, scope: Scope) -> Value:
    """Return what a generator expression is until it is gone over."""
    function = FunctionValue(scope.module, _as_lambda(node), scope, owner=scope.owner)
    return Generator(function, (), {})


@lru_cache(maxsize=512)
def _as_lambda(node: ast.GeneratorExp) -> ast.Lambda:
    """The function without arguments that the expression is the body of: one for each place."""
    nothing = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(nothing, node), node)


def run(m: Machine, body: ast.expr, scope: Scope, consumer: Callable[[Value], None]) -> None:
    """Run a generator expression; each value that it gives goes to the consumer."""
    if isinstance(body, ast.GeneratorExp):
        given = body.elt
        expressions.rounds(
            m, body.generators, scope, lambda: consumer(expressions.evaluate(m, given, scope))
        )
