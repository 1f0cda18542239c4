"""The body of a loop becomes a function of its own; a function that is called once goes inline."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.rewriting import names, scopes

Scope = ast.Module | ast.FunctionDef
LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global,
          ast.Nonlocal, ast.Lambda, ast.NamedExpr, ast.Delete, ast.Import, ast.ImportFrom,
          *scopes.DEFINITIONS)  # fmt: skip


@dataclass(frozen=True)
class Interface:
    """What the body of a loop takes from the code around it, and what it gives back."""

    inputs: list[str]
    outputs: list[str]


def loop_bodies(tree: ast.Module) -> bool:
    """`for x in xs: part(x, …)`, with the body of the loop in `part`."""
    made: list[tuple[ast.stmt, ast.stmt]] = []
    for top in list(tree.body):
        for scope in _scopes(tree, top):
            for loop in _innermost(scope, top):
                found = _interface(tree, scope, loop)
                if found is not None:
                    made.append((top, _moved(loop, found, f"part{len(made)}")))
    for top, function in made:
        tree.body.insert(tree.body.index(top), function)
    return bool(made)


def _scopes(tree: ast.Module, top: ast.stmt) -> list[Scope]:
    inside = [n for n in ast.walk(top) if isinstance(n, ast.FunctionDef)]
    return [*inside] if isinstance(top, scopes.DEFINITIONS) else [tree, *inside]


def _innermost(scope: Scope, top: ast.stmt) -> Iterator[ast.For]:
    """The loops of a scope itself that hold no other loop."""
    own = [top] if isinstance(scope, ast.Module) else scope.body
    for node in scopes.outer_walk(own):
        if isinstance(node, ast.For) and not node.orelse:
            inside = [n for statement in node.body for n in ast.walk(statement)]
            if not any(isinstance(n, (*LEAVES, ast.For, ast.While)) for n in inside):
                yield node


def _interface(tree: ast.Module, scope: Scope, loop: ast.For) -> Interface | None:
    """What has to be handed over; None where the body cannot be moved with certainty."""
    reads = scopes.loaded(loop.body) | _augmented(loop.body)
    if "super" in reads:
        return None
    writes = _written(loop.body)
    bound = _bound_before(scope, loop)
    inputs = reads & bound
    outside = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and not _is_inside(n, loop)]
    wanted = {n.id for n in outside if isinstance(n.ctx, ast.Load)}
    outputs = writes & (wanted | inputs | scopes.stored([loop.target]))
    definite = _definite(loop.body, inputs)
    functions = [n for n in ast.walk(tree) if isinstance(n, scopes.DEFINITIONS)]
    shared = scopes.loaded(f for f in functions if isinstance(scope, ast.Module)) & writes
    if definite is None or not outputs <= definite or shared:
        return None
    return Interface(sorted(inputs), sorted(outputs))


def _is_inside(name: ast.Name, loop: ast.For) -> bool:
    return any(n is name for statement in loop.body for n in ast.walk(statement))


def _augmented(body: Sequence[ast.stmt]) -> set[str]:
    targets = [n.target for n in scopes.walk(body) if isinstance(n, ast.AugAssign)]
    return {t.id for t in targets if isinstance(t, ast.Name)}


def _written(body: Sequence[ast.stmt]) -> set[str]:
    """The names that a body binds; those of comprehensions are their own."""
    own = {
        id(name)
        for n in scopes.walk(body)
        if isinstance(n, ast.comprehension)
        for name in ast.walk(n.target)
    }
    stores = [n for n in scopes.walk(body) if isinstance(n, ast.Name) and id(n) not in own]
    return {n.id for n in stores if isinstance(n.ctx, ast.Store)}


def _bound_before(scope: Scope, loop: ast.For) -> set[str]:
    """The names of a scope that are bound where the loop begins, and the variable of the loop."""
    found = scopes.stored([loop.target])
    if isinstance(scope, ast.FunctionDef):
        found |= {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)}
    for node in scope.body:
        if isinstance(scope, ast.Module) and isinstance(node, scopes.HEAD):
            continue
        if any(n is loop for n in ast.walk(node)):
            return found | _leading(node, loop)
        found |= scopes.stored([node])
    return found


def _leading(around: ast.stmt, loop: ast.For) -> set[str]:
    """The names that a statement binds before it comes to a loop inside of it."""
    earlier = [n for n in ast.walk(around) if getattr(n, "lineno", loop.lineno) < loop.lineno]
    names = (n for n in earlier if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {n.id for n in names}


def _definite(body: Sequence[ast.stmt], inputs: set[str]) -> set[str] | None:
    """The names that are bound at the end for certain; None where one may be read before."""
    known, inner = set(inputs), _written(body)
    for node in body:
        if isinstance(node, ast.With):
            held = _definite(node.body, known | scopes.stored([*node.items]))
            if held is None:
                return None
            known = held
            continue
        if (scopes.loaded([node]) | _augmented([node])) & inner - known:
            return None
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            known |= scopes.stored([node])
    return known


def _moved(loop: ast.For, found: Interface, name: str) -> ast.stmt:
    given = ", ".join(found.inputs)
    function = scopes.statement(f"def {name}({given}):\n    pass")
    assert isinstance(function, ast.FunctionDef)
    function.body = [*loop.body]
    result = ", ".join(found.outputs)
    if found.outputs:
        function.body.append(scopes.statement(f"return {result}"))
    loop.body = [scopes.statement(f"{result} = {name}({given})" if result else f"{name}({given})")]
    return function


def inlined_functions(tree: ast.Module) -> bool:
    """The body of a function that is called once stands where it was called."""
    changed = False
    for function in [n for n in tree.body if isinstance(n, ast.FunctionDef)]:
        uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == function.name]
        place = _only_call(tree, function) if len(uses) == 1 and _is_plain(function) else None
        if place is not None and _put_inline(tree, function, *place):
            tree.body.remove(function)
            changed = True
    return changed


def _is_plain(function: ast.FunctionDef) -> bool:
    """Tell whether a function is statements with one return at its end, under a neutral name."""
    spec = function.args
    others = (spec.posonlyargs, spec.kwonlyargs, spec.vararg, spec.kwarg, function.decorator_list)
    if any(others) or spec.defaults or names.MEANT.search(function.name):
        return False
    *before, last = function.body
    body = before if isinstance(last, ast.Return) else function.body
    value = [last.value] if isinstance(last, ast.Return) and last.value is not None else []
    bound = (*LEAVES, ast.comprehension)
    return bool(body) and not any(isinstance(n, bound) for n in scopes.walk([*body, *value]))


def _only_call(
    tree: ast.Module, function: ast.FunctionDef
) -> tuple[list[ast.stmt], ast.Assign | ast.Expr, ast.Call] | None:
    """The block and statement that are nothing but the call of a function."""
    for block in scopes.blocks(tree):
        for node in block:
            if not isinstance(node, (ast.Assign, ast.Expr)) or not isinstance(node.value, ast.Call):
                continue
            called = node.value.func
            if isinstance(called, ast.Name) and called.id == function.name:
                return block, node, node.value
    return None


def _put_inline(
    tree: ast.Module, function: ast.FunctionDef, block: list[ast.stmt],
    node: ast.Assign | ast.Expr, call: ast.Call,
) -> bool:  # fmt: skip
    parameters = [a.arg for a in function.args.args]
    given = dict(zip(parameters, call.args, strict=False))
    given.update({k.arg: k.value for k in call.keywords if k.arg is not None})
    if len(call.args) + len(call.keywords) != len(parameters) or set(given) != set(parameters):
        return False
    around = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n is not function]
    own = scopes.stored(function.body) | set(parameters)
    free = scopes.loaded(function.body) - own
    if any(free & scopes.stored(f.body) for f in around if any(n is node for n in ast.walk(f))):
        return False
    fresh = _Fresh(own)
    starts: list[ast.stmt] = [
        ast.Assign([ast.Name(fresh.new(p), ast.Store())], v) for p, v in given.items()
    ]
    body = [fresh.visit(n) for n in function.body if not scopes.is_docstring(n)]
    last = body[-1] if body else None
    result: ast.expr = ast.Constant(None)
    if isinstance(last, ast.Return):
        body, result = body[:-1], last.value or ast.Constant(None)
    node.value = result
    position = block.index(node)
    block[position : position + 1] = [*starts, *body, node]
    return True


class _Fresh(ast.NodeTransformer):
    """Gives the variables of a function names that the code around it does not have."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def new(self, name: str) -> str:
        return f"{name}_here"

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.names:
            node.id = self.new(node.id)
        return node
