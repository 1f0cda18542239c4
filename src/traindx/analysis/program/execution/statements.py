"""Statements: bindings, conditions, loops, contexts, definitions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from traindx.analysis.program.execution import (
    calls,
    contexts,
    draws,
    expressions,
    iteration,
    lazy_expressions,
    names,
    parameter_names,
)
from traindx.analysis.program.execution.events import EventForm, Guard, LoopExit, LoopRun
from traindx.analysis.program.execution.machine import TURNS, BlockEnd, FailedCall
from traindx.analysis.program.execution.truth import truth_of
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    ClassValue,
    External,
    FunctionValue,
    Instance,
    Items,
    Known,
    Result,
    Scope,
    Site,
    Unknown,
    Value,
)
from traindx.analysis.program.syntax import Function, Module

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine


def load(m: Machine, module: Module) -> None:
    """Run the top level of a file, once."""
    if module in m.loaded:
        return
    m.loaded.add(module)
    scope = names.file_scope(m, module)
    run(m, module.tree.body, scope)
    m.bindings.append(dict(scope.names))


def run(m: Machine, body: Sequence[ast.stmt], scope: Scope) -> BlockEnd:
    """Run statements; what follows a condition that may leave the block runs under its guard."""
    guards = m.guards
    try:
        for position, node in enumerate(body, 1):
            m.spend()
            status = _run_one(m, node, scope)
            if status is not BlockEnd.NEXT:
                return status
            if m.may_have_continued:
                m.may_have_continued = False
                return _run_or_not(m, body[position:], scope)
        return BlockEnd.NEXT
    finally:
        m.guards = guards


def _run_or_not(m: Machine, rest: Sequence[ast.stmt], scope: Scope) -> BlockEnd:
    """Run what an early `continue` or `return` may have passed over: the rest may not be done."""
    if not rest:
        return BlockEnd.NEXT
    sides = [(None, _running(m, rest, scope)), (None, lambda: BlockEnd.NEXT)]
    return m.explore(sides, keeps_all=True)[0]


def _run_one(m: Machine, node: ast.stmt, scope: Scope) -> BlockEnd:
    rule = _RULES.get(type(node))
    if rule is None:
        return BlockEnd.NEXT
    return rule(m, node, scope) or BlockEnd.NEXT


def _expression(m: Machine, node: ast.Expr, scope: Scope) -> None:
    expressions.evaluate(m, node.value, scope)


def _assign(m: Machine, node: ast.Assign, scope: Scope) -> None:
    value = expressions.evaluate(m, node.value, scope)
    if m.is_repeated():
        for target in node.targets:
            value = _counted(target, node.value, value)
    for target in node.targets:
        bind(m, target, value, scope)


def _counted(target: ast.expr, written: ast.expr, value: Value) -> Value:
    """Forget the number that a count has come to: `i = i + 1`, `i, x = i + 1, y`."""
    if isinstance(target, ast.Tuple) and isinstance(written, ast.Tuple):
        is_paired = isinstance(value, Items) and len(target.elts) == len(written.elts)
        for at, pair in enumerate(zip(target.elts, written.elts, strict=False)):
            if is_paired and at in value.fields:
                value.fields[at] = _counted(*pair, value.fields[at])
    if not isinstance(written, ast.BinOp) or not isinstance(value, Known):
        return value
    sides = {ast.unparse(written.left), ast.unparse(written.right)}
    return Result("operator.add", args=(value,)) if ast.unparse(target) in sides else value


def _annotated(m: Machine, node: ast.AnnAssign, scope: Scope) -> None:
    if node.value is not None:
        bind(m, node.target, expressions.evaluate(m, node.value, scope), scope)


def _augmented(m: Machine, node: ast.AugAssign, scope: Scope) -> None:
    before = expressions.evaluate(m, node.target, scope)
    value = expressions.evaluate(m, node.value, scope)
    if isinstance(before, Items) and isinstance(node.op, ast.Add):
        site = Site(scope.module, node)
        m.record(EventForm.CALL, site, ".extend", before, (value,), {}, scope.function)
    result = expressions.operator_result(m, node.op, before, value, node, scope, is_in_place=True)
    bind(m, node.target, result, scope)


def bind(m: Machine, target: ast.expr, value: Value, scope: Scope) -> None:
    """Bind a value to a name, attribute, item or several of them."""
    if isinstance(target, ast.Name):
        _bind_name(m, target.id, value, scope)
        m.note_assignment(Site(scope.module, target), target.id, value)
    elif isinstance(target, ast.Attribute):
        owner = expressions.evaluate(m, target.value, scope)
        value.add_name(target.attr)
        m.write(owner.fields, target.attr, value)
        _note_store(m, target, owner, target.attr, value, scope)
    elif isinstance(target, ast.Subscript):
        owner = expressions.evaluate(m, target.value, scope)
        key = expressions.evaluate(m, target.slice, scope)
        if calls.special(m, owner, "__setitem__", (key, value), target, scope) is not None:
            return
        iteration.set_item(m, owner, key, value)
        _note_store(m, target, owner, "[]", value, scope, key)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(m, target.elts, value, scope)
    elif isinstance(target, ast.Starred):
        bind(m, target.value, value, scope)


def _note_store(
    m: Machine, target: ast.expr, owner: Value, name: str, value: Value, scope: Scope,
    key: Value | None = None,
) -> None:  # fmt: skip
    site = Site(scope.module, target)
    args = (value,) if key is None else (value, key)
    m.record(EventForm.STORE, site, name, owner, args, {}, scope.function)


def _bind_name(m: Machine, name: str, value: Value, scope: Scope) -> None:
    home: Scope | None = scope
    if name in scope.outer_names:
        home = scope.around
        while home is not None and home.around is not None and name not in home.names:
            home = home.around
    value.add_name(name)
    m.write((home or scope).names, name, value)


def _unpack(m: Machine, targets: Sequence[ast.expr], value: Value, scope: Scope) -> None:
    starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    found = _members_of_any(value, len(targets)) or iteration.members(value)
    if found is not None and starred is not None and len(found) >= len(targets) - 1:
        end = len(found) - (len(targets) - starred - 1)
        rest = iteration.items_of(found[starred:end])
        found = [*found[:starred], rest, *found[end:]]
    if found is None or len(found) != len(targets):
        found = [names.part(value, i) for i in range(len(targets))]
        if starred is None and not m.guards:
            value.fields["unpacked", len(targets)] = Known(len(targets))
    for target, item in zip(targets, found, strict=True):
        bind(m, target, item, scope)


def _members_of_any(value: Value, count: int) -> list[Value] | None:
    """Return the members of one of several tuples, position by position."""
    if not isinstance(value, Choice):
        return None
    rows = [iteration.members(option) for option in value.options]
    if any(row is None or len(row) != count for row in rows):
        return None
    columns = zip(*(row for row in rows if row is not None), strict=True)
    return [expressions.joined_all(column) for column in columns]


def _condition(m: Machine, node: ast.If, scope: Scope) -> BlockEnd:
    if _is_main_guard(node.test):
        return run(m, node.body if scope.module is m.main else node.orelse, scope)
    test = expressions.evaluate(m, node.test, scope)
    known = truth_of(test)
    if known is not None:
        return run(m, node.body if known else node.orelse, scope)
    return choose(m, node, test, (node.body, node.orelse), scope)


def choose(
    m: Machine, node: ast.AST, test: Value, sides: tuple[Sequence[ast.stmt], Sequence[ast.stmt]],
    scope: Scope,
) -> BlockEnd:  # fmt: skip
    """Run both sides of a condition; where one leaves the block, the rest runs under the other."""
    site = Site(scope.module, node)
    found = m.explore(
        [
            (Guard(test, site, True), lambda: run(m, sides[0], scope)),
            (Guard(test, site, False), lambda: run(m, sides[1], scope)),
        ]
    )
    if BlockEnd.NEXT not in found:
        return found[0] if found[0] is found[1] else _milder(found)
    left = [s for s in found if s is not BlockEnd.NEXT]
    if left and left[0] is not BlockEnd.RAISE:
        m.guards = (*m.guards, Guard(test, site, found[0] is BlockEnd.NEXT))
        m.may_have_continued = left[0] in (BlockEnd.CONTINUE, BlockEnd.RETURN)
    return BlockEnd.NEXT


def _milder(found: Sequence[BlockEnd]) -> BlockEnd:
    order = (BlockEnd.CONTINUE, BlockEnd.BREAK, BlockEnd.RETURN, BlockEnd.RAISE)
    return next(s for s in order if s in found)


def _is_main_guard(test: ast.expr) -> bool:
    left = test.left if isinstance(test, ast.Compare) else None
    return isinstance(left, ast.Name) and left.id == "__name__"


def _for(m: Machine, node: ast.For, scope: Scope) -> BlockEnd:
    over = expressions.evaluate(m, node.iter, scope)
    loop = LoopRun(Site(scope.module, node), over)

    def body(element: Value) -> BlockEnd:
        bind(m, node.target, element, scope)
        return run(m, node.body, scope)

    each = parameter_names.collected_from(m, node, over)
    most = iteration.MAX_MEMBERS if each is over else expressions.MOST_ROUNDS
    return _after(m, node, iteration.run_over(m, loop, each, body, scope, most), scope)


def _break(m: Machine, node: ast.Break, scope: Scope) -> BlockEnd:
    m.exits.append(LoopExit(len(m.events), Site(scope.module, node), m.turns, m.guards))
    return BlockEnd.BREAK


def _after(m: Machine, node: ast.For | ast.While, status: BlockEnd, scope: Scope) -> BlockEnd:
    """Go on behind a loop: its `else` runs where nothing left it."""
    if status is BlockEnd.BREAK:
        return BlockEnd.NEXT
    return status if status is not BlockEnd.NEXT else run(m, node.orelse, scope)


def _while(m: Machine, node: ast.While, scope: Scope) -> BlockEnd:
    drawing = draws.drawing_call(scope.module, node)
    if drawing is not None:
        return _while_drawn(m, node, drawing, scope)
    test = expressions.evaluate(m, node.test, scope)
    if truth_of(test) is False:
        return run(m, node.orelse, scope)
    loop = LoopRun(Site(scope.module, node), None)

    def body(element: Value | None) -> BlockEnd:
        if element is not None:
            expressions.evaluate(m, node.test, scope)
        return run(m, node.body, scope)

    turns: Iterator[Value | None] = iter([None, *[test] * (TURNS - 1)])
    status = m.run_loop(loop, turns, body)
    return BlockEnd.NEXT if status is BlockEnd.BREAK else status


def _while_drawn(m: Machine, node: ast.While, drawing: ast.Call, scope: Scope) -> BlockEnd:
    """Run a loop that takes what it goes over by `next`, until there is no more."""
    over = expressions.evaluate(m, drawing.args[0], scope)
    loop = LoopRun(Site(scope.module, node), over)

    def body(element: Value) -> BlockEnd:
        m.drawn[drawing] = element
        expressions.evaluate(m, node.test, scope)
        return run(m, node.body, scope)

    status = iteration.run_over(m, loop, over, body, scope)
    m.drawn.pop(drawing, None)
    return _after(m, node, status, scope)


def _with(m: Machine, node: ast.With | ast.AsyncWith, scope: Scope) -> BlockEnd:
    return contexts.run_with(m, list(node.items), node.body, scope)


def _try(m: Machine, node: ast.Try, scope: Scope) -> BlockEnd:
    outer, m.tried = m.tried, m.guards if node.handlers else m.tried
    try:
        status = run(m, [*node.body, *node.orelse], scope)
    except FailedCall as failed:
        m.tried = outer
        status = _handled(m, node, failed, scope)
    else:
        m.tried = outer
        _handlers(m, node, scope)
    finally:
        m.tried = outer
    ended = run(m, node.finalbody, scope)
    return ended if ended is not BlockEnd.NEXT else status


def _handlers(m: Machine, node: ast.Try, scope: Scope) -> None:
    """Run the handlers of what may fail or not, each from the state behind it."""
    for handler in node.handlers:
        guard = Guard(None, Site(scope.module, handler), True)
        if handler.name:
            _bind_name(m, handler.name, Unknown(name=handler.name), scope)
        m.explore([(guard, _running(m, handler.body, scope)), (None, lambda: BlockEnd.NEXT)])


def _handled(m: Machine, node: ast.Try, failed: FailedCall, scope: Scope) -> BlockEnd:
    """Run the handler of something that fails for certain; where none is for it, go on outside."""
    for handler in node.handlers:
        named = [] if handler.type is None else [*ast.walk(handler.type)]
        kinds = {n.id for n in named if isinstance(n, ast.Name)}
        if handler.type is None or kinds & {failed.kind, "Exception", "BaseException"}:
            if handler.name:
                _bind_name(m, handler.name, Unknown(name=handler.name), scope)
            return run(m, handler.body, scope)
    m.fail(failed.kind)
    return BlockEnd.RAISE


def _running(m: Machine, body: Sequence[ast.stmt], scope: Scope) -> Callable[[], BlockEnd]:
    return lambda: run(m, body, scope)


def _match(m: Machine, node: ast.Match, scope: Scope) -> BlockEnd:
    subject = expressions.evaluate(m, node.subject, scope)
    site = Site(scope.module, node)
    sides = []
    for case in node.cases:
        decided = _is_case(case, subject)
        if decided is False:
            continue
        guard = Guard(subject, Site(scope.module, case.pattern), True)
        sides.append((guard, _running(m, case.body, scope)))
        if decided:
            break
    if not sides:
        return BlockEnd.NEXT
    if len(sides) == 1 and decided:
        return sides[0][1]()
    nothing: tuple[Guard, Callable[[], BlockEnd]] = (
        Guard(subject, site, False),
        lambda: BlockEnd.NEXT,
    )
    found = m.explore([*sides, *([] if decided else [nothing])])
    return BlockEnd.NEXT if BlockEnd.NEXT in found else _milder(found)


def _is_case(case: ast.match_case, subject: Value) -> bool | None:
    """Tell whether a case is the one; None where that is not known."""
    if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None:
        return True if case.guard is None else None
    if isinstance(case.pattern, ast.MatchValue) and isinstance(subject, Known):
        wanted = case.pattern.value
        return wanted.value == subject.value if isinstance(wanted, ast.Constant) else None
    return None


def _function(m: Machine, node: Function, scope: Scope) -> None:
    function = FunctionValue(scope.module, node, scope, owner=scope.owner)
    function.site = Site(scope.module, node)
    _bind_name(m, node.name, decorated(m, node, scope, function), scope)


TRANSPARENT = frozenset(
    {"staticmethod", "classmethod", "property", "cached_property", "contextmanager",
     "no_grad", "inference_mode", "enable_grad", "wraps", "lru_cache", "cache", "abstractmethod",
     "override", "typechecked", "set_grad_enabled", "autocast"}
)  # fmt: skip


def decorated(m: Machine, node: Function, scope: Scope, function: FunctionValue) -> Value:
    """Return what a definition binds: the project's own decorators are applied."""
    value: Value = function
    for decorator in reversed(node.decorator_list):
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        last = (scope.module.qualified(target) or "").rsplit(".", 1)[-1]
        if last in TRANSPARENT:
            continue
        applied = expressions.evaluate(m, decorator, scope)
        if isinstance(applied, FunctionValue) and applied.node not in m.active:
            made = calls.call(m, applied, (value,), {}, decorator, scope)
            if isinstance(made, (FunctionValue, Instance)):
                if isinstance(made, FunctionValue) and function.bound is not None:
                    made = _rebound(made, function)
                value = made
            continue
        function.decorators = (*function.decorators, applied)
        if isinstance(applied, External):
            m.record(
                EventForm.CALL,
                Site(scope.module, decorator),
                applied.name,
                None,
                (value,),
                {},
                None,
            )
    return value


def _rebound(made: FunctionValue, function: FunctionValue) -> FunctionValue:
    """Bind what a decorator returned to the object that the method is of."""
    return FunctionValue(made.module, made.node, made.scope, function.bound, function.owner)


def _class(m: Machine, node: ast.ClassDef, scope: Scope) -> None:
    value: Value = names.class_value(m, node, scope)
    for decorator in reversed(node.decorator_list):
        applied = expressions.evaluate(m, decorator, scope)
        if isinstance(applied, FunctionValue) and applied.node not in m.active:
            made = calls.call(m, applied, (value,), {}, decorator, scope)
            value = made if isinstance(made, ClassValue) else value
    _bind_name(m, node.name, value, scope)


def _return(m: Machine, node: ast.Return, scope: Scope) -> BlockEnd:
    if isinstance(node.value, ast.GeneratorExp) and m.gradients is not Answer.YES:
        value = lazy_expressions.later(node.value, scope)  # it runs behind the `no_grad` around it
    else:
        value = Known(None) if node.value is None else expressions.evaluate(m, node.value, scope)
    scope.returned.append(value)
    return BlockEnd.RETURN


def _raise(m: Machine, node: ast.Raise, scope: Scope) -> BlockEnd:
    if node.exc is not None:
        expressions.evaluate(m, node.exc, scope)
    return BlockEnd.RAISE


def _outer(m: Machine, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
    scope.outer_names |= set(node.names)


def _import(m: Machine, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
    """An import inside a function or after a rebinding: the name means what the file imports.

    Where a file imports another one of the project, that one runs: it may fill a registry. What
    stands in the background of a large library runs only where a name of its top level is asked
    for; else every program would be the import of the whole library, and nothing after it.
    """
    for item in node.names if scope.function is None and scope.around is None else ():
        home = names.imported_file(m, scope.module, node, item.name)
        if home is not None and home not in m.project.set_aside:
            load(m, home)
    for item in node.names:
        name = item.asname or item.name.split(".")[0]
        if name != "*" and name in scope.names:
            m.write(scope.names, name, External(scope.module.aliases.get(name, name)))


def _delete(m: Machine, node: ast.Delete, scope: Scope) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            m.write(scope.names, target.id, Unknown(name=target.id))
        elif isinstance(target, ast.Subscript):
            owner = expressions.evaluate(m, target.value, scope)
            key = expressions.evaluate(m, target.slice, scope)
            site = Site(scope.module, target)
            m.record(
                EventForm.CALL, site, "operator.delitem", None, (owner, key), {}, scope.function
            )


def _assert(m: Machine, node: ast.Assert, scope: Scope) -> None:
    expressions.evaluate(m, node.test, scope)


_RULES: dict[type[ast.stmt], Callable[[Any, Any, Any], BlockEnd | None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _condition,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: lambda m, node, scope: BlockEnd.CONTINUE,
    ast.Global: _outer,
    ast.Nonlocal: _outer,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Delete: _delete,
    ast.Assert: _assert,
}
if hasattr(ast, "TryStar"):
    _RULES[ast.TryStar] = _try
