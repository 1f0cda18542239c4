"""Loops written in another way."""

from __future__ import annotations

import ast

from bench.rewriting import scopes


def _plain_loops(tree: ast.Module) -> list[tuple[list[ast.stmt], ast.For]]:
    """The `for` loops without `else`, and the blocks that they stand in."""
    return [
        (block, node)
        for block in scopes.blocks(tree)
        for node in block
        if isinstance(node, ast.For) and not node.orelse
    ]


def while_for_for(tree: ast.Module) -> bool:
    """`it = iter(xs)`, `while True:` and `next(it)`."""
    found = _plain_loops(tree)
    for number, (block, node) in enumerate(found):
        name = f"_iterator{number}"
        end = ast.parse(f"try:\n    _\nexcept StopIteration:\n    break\n_x = next({name})")
        attempt = end.body[0]
        assert isinstance(attempt, ast.Try)
        target = ast.Assign([node.target], scopes.expression(f"next({name})"))
        attempt.body = [target]
        loop = ast.While(ast.Constant(True), [attempt, *node.body], [])
        start = ast.Assign(
            [ast.Name(name, ast.Store())],
            ast.Call(ast.Name("iter", ast.Load()), [node.iter], []),
        )
        position = block.index(node)
        block[position : position + 1] = [start, loop]
        ast.fix_missing_locations(tree)
    return bool(found)


def enumerated(tree: ast.Module) -> bool:
    """`for i, x in enumerate(xs)`."""
    for number, (_, node) in enumerate(found := _plain_loops(tree)):
        node.target = _pair(f"_i{number}", node.target)
        node.iter = ast.Call(ast.Name("enumerate", ast.Load()), [node.iter], [])
    return bool(found)


def with_progress(tree: ast.Module) -> bool:
    """`for x in tqdm(xs)`."""
    found = _plain_loops(tree)
    for _, node in found:
        node.iter = ast.Call(ast.Name("tqdm", ast.Load()), [node.iter], [])
    if found:
        scopes.add_import(tree, "from tqdm import tqdm")
    return bool(found)


def zipped(tree: ast.Module) -> bool:
    """`for i, x in zip(itertools.count(), xs)`."""
    found = _plain_loops(tree)
    for number, (_, node) in enumerate(found):
        count = scopes.expression("itertools.count()")
        node.target = _pair(f"_n{number}", node.target)
        node.iter = ast.Call(ast.Name("zip", ast.Load()), [count, node.iter], [])
    if found:
        scopes.add_import(tree, "import itertools")
    return bool(found)


def _pair(name: str, target: ast.expr) -> ast.Tuple:
    return ast.Tuple([ast.Name(name, ast.Store()), target], ast.Store())


def early_continue(tree: ast.Module) -> bool:
    """A last `if` of a loop's body becomes a `continue` where it does not hold."""
    changed = False
    for _, node in _plain_loops(tree):
        last = node.body[-1]
        if isinstance(last, ast.If) and not last.orelse:
            leave = ast.If(ast.UnaryOp(ast.Not(), last.test), [ast.Continue()], [])
            node.body[-1:] = [leave, *last.body]
            changed = True
    return changed


def inverted_condition(tree: ast.Module) -> bool:
    """`if not c: B else: A` for `if c: A else: B`."""
    changed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.orelse and not scopes.is_main_guard(node):
            node.test = ast.UnaryOp(ast.Not(), node.test)
            node.body, node.orelse = node.orelse, node.body
            changed = True
    return changed


def loop_for_comprehension(tree: ast.Module) -> bool:
    """`xs = [f(a) for a in b]` becomes a loop that appends."""
    changed = False
    for block in list(scopes.blocks(tree)):
        for node in list(block):
            value = node.value if isinstance(node, ast.Assign) else None
            if not isinstance(value, ast.ListComp) or len(value.generators) != 1:
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if not isinstance(target, ast.Name):
                continue
            first = value.generators[0]
            append = ast.Expr(
                ast.Call(
                    ast.Attribute(ast.Name(target.id, ast.Load()), "append", ast.Load()),
                    [value.elt],
                    [],
                )
            )
            body: list[ast.stmt] = [append]
            for test in reversed(first.ifs):
                body = [ast.If(test, body, [])]
            start = ast.Assign([ast.Name(target.id, ast.Store())], ast.List([], ast.Load()))
            loop = ast.For(first.target, first.iter, body, [])
            position = block.index(node)
            block[position : position + 1] = [start, loop]
            changed = True
    return changed


def comprehension_for_loop(tree: ast.Module) -> bool:
    """`xs = []` and a loop that appends become `xs = [f(a) for a in b]`."""
    changed = False
    for block in scopes.blocks(tree):
        for position in range(len(block) - 1, 0, -1):
            start, loop = block[position - 1], block[position]
            name = scopes.bound_name(start)
            is_empty = isinstance(start, ast.Assign) and ast.unparse(start.value) == "[]"
            if not (name and is_empty and isinstance(loop, ast.For)) or loop.orelse:
                continue
            made = _collected(loop, name)
            if made is not None and not _is_read_elsewhere(tree, loop):
                block[position - 1 : position + 1] = [
                    ast.Assign([ast.Name(name, ast.Store())], made)
                ]
                changed = True
    return changed


def _collected(loop: ast.For, name: str) -> ast.ListComp | None:
    """The comprehension that does what a loop does which only appends to a list."""
    tests: list[ast.expr] = []
    body = loop.body
    while len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse:
        tests.append(body[0].test)
        body = body[0].body
    node = body[0] if len(body) == 1 else None
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != f"{name}.append":
        return None
    inside = [*call.args, *tests, loop.iter]
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    is_open = any(isinstance(n, kinds) for n in scopes.walk(inside))
    if len(call.args) != 1 or is_open or name in scopes.loaded(inside):
        return None
    return ast.ListComp(call.args[0], [ast.comprehension(loop.target, loop.iter, tests, 0)])


def _is_read_elsewhere(tree: ast.Module, loop: ast.For) -> bool:
    """Tell whether the variable of a loop is read outside of it."""
    inside = {id(n) for n in ast.walk(loop)}
    outside = [n for n in ast.walk(tree) if id(n) not in inside]
    return bool(scopes.stored([loop.target]) & scopes.loaded_of(outside))
