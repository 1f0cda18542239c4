"""Expressions: names, calls, operators, comprehensions, subscripts."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from traindx.analysis.program.execution import (
    calls,
    classes,
    iteration,
    mappings,
    names,
    parameter_names,
    plain_kinds,
    statements,
)
from traindx.analysis.program.execution.events import EventForm, Guard, LoopRun
from traindx.analysis.program.execution.machine import BlockEnd
from traindx.analysis.program.execution.truth import is_none, is_one, is_same_dtype, truth_of
from traindx.analysis.program.execution.values import (
    FunctionValue,
    Items,
    Known,
    NeverEqual,
    Result,
    Scope,
    Site,
    Table,
    Unknown,
    Value,
    joined,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

OPERATORS: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any] | None]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", None),
    ast.BitAnd: ("and", None),
    ast.BitOr: ("or", None),
    ast.BitXor: ("xor", None),
    ast.LShift: ("lshift", None),
    ast.RShift: ("rshift", None),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.In: ("in", None),
    ast.NotIn: ("not_in", None),
}
COUNTS = frozenset({f"operator.{i}{name}" for i in ("", "i") for name in ("add", "sub", "mul")})
MAX_NUMBER = 1e300
MAX_EXPONENT = 64
MAX_TEXT = 10_000
MOST_ROUNDS = 300  # of a comprehension over what is written down
MAX_RANGE = 8  # of a comprehension over numbers


def evaluate(m: Machine, node: ast.expr, scope: Scope) -> Value:
    """Return the value of an expression."""
    m.spend()
    rule = _RULES.get(type(node))
    value: Value = Unknown() if rule is None else rule(m, node, scope)
    if value.site is None:
        value.site = Site(scope.module, node)
    return value


def _constant(m: Machine, node: ast.Constant, scope: Scope) -> Value:
    return Known(node.value)


def _name(m: Machine, node: ast.Name, scope: Scope) -> Value:
    return names.resolve(m, node.id, scope)


def _attribute(m: Machine, node: ast.Attribute, scope: Scope) -> Value:
    return names.attribute(m, evaluate(m, node.value, scope), node.attr, node, scope)


def _call(m: Machine, node: ast.Call, scope: Scope) -> Value:
    callee = calls.callee_of(m, node.func, scope)
    args: list[Value] = []
    for given in node.args:
        if isinstance(given, ast.Starred):
            args.extend(_spread(evaluate(m, given.value, scope)))
        else:
            args.append(evaluate(m, given, scope))
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        value = evaluate(m, keyword.value, scope)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif (entries := mappings.entries_of(value)) is not None and entries.is_whole:
            kwargs.update({str(k): v for k, v in entries.fields.items()})
        else:
            kwargs["**"] = value
    return calls.call(m, callee, args, kwargs, node, scope)


def _spread(value: Value) -> list[Value]:
    found = iteration.members(value)
    return found if found is not None else [Result("operator.spread", args=(value,))]


def _binary(m: Machine, node: ast.BinOp, scope: Scope) -> Value:
    left, right = evaluate(m, node.left, scope), evaluate(m, node.right, scope)
    return operator_result(m, node.op, left, right, node, scope)


def operator_result(
    m: Machine, op: ast.AST, left: Value, right: Value, node: ast.AST, scope: Scope,
    *, is_in_place: bool = False,
) -> Value:  # fmt: skip
    """Return what an operator makes of two values."""
    name, function = OPERATORS[type(op)]
    never = plain_kinds.compared(name, left, right)
    if isinstance(never, NeverEqual) and not _are_plain(left, right):
        return _noted(m, f"operator.{name}", (left, right), never, node, scope)
    alike = is_same_dtype(left, right) if name in ("eq", "ne") else None
    if alike is not None:
        return Known(alike is (name == "eq"), (left, right))
    counts = is_in_place and m.is_repeated()  # a counter has another value in every turn
    if isinstance(left, Known) and isinstance(right, Known) and function and not counts:
        made = _computed(function, left.value, right.value)
        return Unknown() if made is None else Known(made.value, (left, right))
    site = Site(scope.module, node) if is_in_place else None
    lists = _list_operation(m, name, left, right, site, scope.function)
    if lists is not None:
        return lists
    for method in (f"__i{name}__",) * is_in_place + (f"__{name}__",):
        own = calls.special(m, left, method, (right,), node, scope)
        if own is not None:
            return own
    together = mappings.merged(left, right) if name == "or" else None
    if together is not None:
        return together
    if name == "mod" and isinstance(right, Known) and right.value == 1 and _is_integer(left):
        return Known(0)
    if isinstance(left, Known) and isinstance(left.value, str) and name == "mod":
        return Result("str.format", args=(left, right))
    maker = f"operator.i{name}" if is_in_place else f"operator.{name}"
    found = Result(maker, args=(left, right), gradients=m.gradients, site=Site(scope.module, node))
    m.record(EventForm.CALL, Site(scope.module, node), maker, None, (left, right), {},
             scope.function, found)  # fmt: skip
    return found


def _list_operation(
    m: Machine, name: str, left: Value, right: Value, changed_at: Site | None,
    function: ast.AST | None,
) -> Value | None:  # fmt: skip
    """Return what `+` and `*` make of a list, or of the one that is changed in place."""
    if not isinstance(left, Items):
        return None
    if isinstance(right, Items) and name == "add":
        whole = left.is_whole and right.is_whole
        if changed_at is not None:
            for member in right.members:
                m.record(EventForm.CALL, changed_at, ".append", left, (member,), {}, function, None)
                iteration.append(m, left, member)
            return left
        if left.is_whole and not whole:
            return iteration.with_more(left.members, right.members, left.kind)
        return iteration.items_of([*left.members, *right.members], left.kind, is_whole=whole)
    is_list = isinstance(right, Result) and right.maker in ("builtins.sorted", "builtins.list")
    if left.is_whole and name == "add" and is_list:
        return iteration.lengthened(m, left, right, is_in_place=changed_at is not None)
    if name == "mul" and isinstance(right, Known):
        times = right.value if isinstance(right.value, int) else 1
        whole = left.is_whole and times <= MAX_RANGE
        repeated = left.members * max(1, min(times, MAX_RANGE))
        return iteration.items_of(repeated, left.kind, is_whole=whole)
    return None


def _are_plain(left: Value, right: Value) -> bool:
    """Tell whether two constants are compared: their values say more than their sorts."""
    return type(left) is Known and type(right) is Known


def _noted(
    m: Machine, name: str, args: tuple[Value, ...], found: Value, node: ast.AST, scope: Scope
) -> Value:
    site = Site(scope.module, node)
    m.record(EventForm.CALL, site, name, None, args, {}, scope.function, found)
    return found


def _is_integer(value: Value, depth: int = 6) -> bool:
    """Tell whether a value is a whole number: a counter, an index, a length."""
    if isinstance(value, Known):
        return isinstance(value.value, int)
    if not isinstance(value, Result) or depth == 0:
        return False
    if value.maker in ("builtins.len", "builtins.int", "builtins.range"):
        return True
    if value.maker == "builtins.next" or value.maker in COUNTS:
        return bool(value.args) and all(_is_integer(a, depth - 1) for a in value.args)
    return False


def _computed(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Known | None:
    """Compute with constants, within bounds."""
    is_power = function is operator.pow
    if is_power and not (isinstance(right, (int, float)) and abs(right) <= MAX_EXPONENT):
        return None
    for text, count in ((left, right), (right, left)):
        if isinstance(text, (str, bytes)) and isinstance(count, int) and count > MAX_TEXT:
            return None
    try:
        value = function(left, right)
    except Exception:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) > MAX_NUMBER:
        return None
    return Known(value)


def _unary(m: Machine, node: ast.UnaryOp, scope: Scope) -> Value:
    value = evaluate(m, node.operand, scope)
    if isinstance(node.op, ast.Not):
        known = truth_of(value)
        return Known(not known) if known is not None else Result("operator.not", args=(value,))
    if isinstance(value, Known) and isinstance(value.value, (int, float)):
        negative = isinstance(node.op, ast.USub)
        return Known(-value.value) if negative else value
    name = {ast.USub: "neg", ast.Invert: "invert"}.get(type(node.op))
    if name is None:
        return value
    found = Result(f"operator.{name}", args=(value,), gradients=m.gradients)
    m.record(EventForm.CALL, Site(scope.module, node), f"operator.{name}", None, (value,), {},
             scope.function, found)  # fmt: skip
    return found


def _boolean(m: Machine, node: ast.BoolOp, scope: Scope) -> Value:
    """`a and b`, `a or b`: the second is evaluated where the first does not decide."""
    is_and = isinstance(node.op, ast.And)
    found: Value | None = None
    undecided: list[Value] = []
    for operand in node.values:
        value = evaluate(m, operand, scope)
        known = truth_of(value)
        if known is not None and known is not is_and:
            found = value
            break
        if known is None:
            undecided.append(value)
        found = value
    if not undecided:
        return found or Unknown()
    if found is not None and truth_of(found) is not None and truth_of(found) is not is_and:
        # one operand decides the truth whatever the others are
        return found if is_and else joined_all([*undecided, found])
    if is_and:
        return Result("operator.and_", args=tuple(undecided))
    return joined_all([*undecided, *([found] if found not in undecided and found else [])])


def joined_all(values: Sequence[Value]) -> Value:
    """Return one of several values."""
    result = values[0]
    for value in values[1:]:
        result = joined(result, value)
    return result


def _compare(m: Machine, node: ast.Compare, scope: Scope) -> Value:
    left = evaluate(m, node.left, scope)
    results = []
    for op, other in zip(node.ops, node.comparators, strict=True):
        right = evaluate(m, other, scope)
        results.append(_compared(m, op, left, right, node, scope))
        left = right
    if len(results) == 1:
        return results[0]
    known = [truth_of(r) for r in results]
    if False in known:
        return Known(False)
    return Known(True) if all(known) else Result("operator.and_", args=tuple(results))


def _compared(
    m: Machine, op: ast.cmpop, left: Value, right: Value, node: ast.Compare, scope: Scope
) -> Value:
    if isinstance(op, (ast.Is, ast.IsNot)):
        known = is_none(left) if is_none(right) else None
        if known is None:
            known = is_one(left, right)
        known = classes.is_one_class(left, right) if known is None else known
        if known is not None:
            return Known(known is isinstance(op, ast.Is))
        return Result("operator.is" if isinstance(op, ast.Is) else "operator.is_not",
                      args=(left, right))  # fmt: skip
    if isinstance(op, (ast.In, ast.NotIn)):
        never = None if _are_plain(left, right) else plain_kinds.member_of(left, right)
        if never is not None:
            truth = NeverEqual(isinstance(op, ast.NotIn), (left, right))
            return _noted(m, "operator.in", (left, right), truth, node, scope)
        found = _is_member(left, right)
        found = classes.is_class_among(left, right) if found is None else found
        if found is not None:
            return Known(found is isinstance(op, ast.In))
        member = Result("operator.in", args=(left, right))
        return member if isinstance(op, ast.In) else Result("operator.not", args=(member,))
    is_same = classes.is_one_class(left, right) if isinstance(op, (ast.Eq, ast.NotEq)) else None
    if is_same is not None:
        return Known(is_same is isinstance(op, ast.Eq))
    return operator_result(m, op, left, right, node, scope)


def _is_member(value: Value, container: Value) -> bool | None:
    if not isinstance(value, Known):
        return None
    if isinstance(container, Known) and isinstance(container.value, str):
        return isinstance(value.value, str) and value.value in container.value
    entries = mappings.entries_of(container)
    if entries is not None and entries.is_whole:
        return value.value in entries.fields
    found = iteration.members(container)
    if found is None or not all(isinstance(f, Known) for f in found):
        return None
    return any(isinstance(f, Known) and f.value == value.value for f in found)


def _either(m: Machine, node: ast.IfExp, scope: Scope) -> Value:
    test = evaluate(m, node.test, scope)
    known = truth_of(test)
    if known is not None:
        return evaluate(m, node.body if known else node.orelse, scope)
    found: list[Value] = []
    site = Site(scope.module, node)

    def side(part: ast.expr) -> Callable[[], BlockEnd]:
        def run() -> BlockEnd:
            found.append(evaluate(m, part, scope))
            return BlockEnd.NEXT

        return run

    m.explore(
        [
            (Guard(test, site, True), side(node.body)),
            (Guard(test, site, False), side(node.orelse)),
        ]
    )
    return joined(found[0], found[1])


def _sequence(m: Machine, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> Value:
    found: list[Value] = []
    is_whole, ahead = True, 0
    for part in node.elts:
        if isinstance(part, ast.Starred):
            value = evaluate(m, part.value, scope)
            several = iteration.members(value)
            ahead = len(found) if is_whole and several is None else ahead
            is_whole = is_whole and several is not None
            found.extend(several if several is not None else [iteration.element_of(m, value)])
        else:
            found.append(evaluate(m, part, scope))
    kind = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}[type(node)]
    made = iteration.items_of(found, kind, is_whole=is_whole)
    made.born, made.ahead = m.turns, ahead
    return made


def _dict(m: Machine, node: ast.Dict, scope: Scope) -> Value:
    made = Table()
    for key, value in zip(node.keys, node.values, strict=True):
        item = evaluate(m, value, scope)
        if key is None:
            if isinstance(item, Table):
                made.fields.update(item.fields)
                made.is_whole = made.is_whole and item.is_whole
            else:
                made.is_whole = False
            continue
        known = evaluate(m, key, scope)
        is_plain = isinstance(known, Known) and (
            known.value is None or isinstance(known.value, (str, int, float, bool))
        )
        if is_plain and isinstance(known, Known):
            item.add_name(str(known.value))
            made.fields[known.value] = item
        else:
            made.fields[known] = item  # a tensor, a model: the key is the object itself
            made.is_whole = False
    return made


def _comprehension(
    m: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope
) -> Value:
    found: list[Value] = []
    inner = Scope(scope.module, {}, scope, scope.function, scope.bound, scope.owner)
    over: list[Value] = []
    whole = rounds(
        m, node.generators, inner, lambda: found.append(evaluate(m, node.elt, inner)), over
    )
    if isinstance(node, ast.SetComp):
        is_known = all(isinstance(member, Known) for member in found)
        return iteration.items_of(found, "set", is_whole=whole and is_known)
    kind = iteration.ONE_PASS if isinstance(node, ast.GeneratorExp) else "list"
    made = iteration.items_of(found, kind, is_whole=whole)
    first, *rest = node.generators
    if not whole and not rest and not first.ifs:
        made.over = over[0]
    return made


def _dict_comprehension(m: Machine, node: ast.DictComp, scope: Scope) -> Value:
    made = Table()
    inner = Scope(scope.module, {}, scope, scope.function, scope.bound, scope.owner)

    def add() -> None:
        key, value = evaluate(m, node.key, inner), evaluate(m, node.value, inner)
        is_known = isinstance(key, Known) and isinstance(key.value, (str, int))
        made.fields[key.value if is_known else key] = value  # type: ignore[attr-defined]

    made.is_whole = rounds(m, node.generators, inner, add)
    return made


def rounds(
    m: Machine, generators: list[ast.comprehension], scope: Scope, made: Callable[[], None],
    goes_over: list[Value] | None = None,
) -> bool:  # fmt: skip
    """Run what a comprehension does, and note what it goes over; tell whether all of it was run."""
    if not generators:
        made()
        return True
    first, *rest = generators
    over = evaluate(m, first.iter, scope)
    if goes_over is not None:
        goes_over.append(over)
    loop = LoopRun(Site(scope.module, first.target), over)
    over = parameter_names.pairs_of(m, over) or over
    whole = True
    refused = taken = False

    def body(element: Value) -> BlockEnd:
        nonlocal whole, refused, taken
        statements.bind(m, first.target, element, scope)
        for test in first.ifs:
            found = evaluate(m, test, scope)
            known = truth_of(found)
            if known is False:
                refused = refused or isinstance(found, NeverEqual)
                taken = taken or not isinstance(found, NeverEqual)
                return BlockEnd.CONTINUE
            whole = whole and known is True
        taken = True
        whole = rounds(m, rest, scope, made) and whole
        return BlockEnd.NEXT

    iteration.run_over(m, loop, over, body, scope, MOST_ROUNDS)
    return whole and (loop.is_whole or (refused and not taken))


def _lambda(m: Machine, node: ast.Lambda, scope: Scope) -> Value:
    return FunctionValue(scope.module, node, scope, owner=scope.owner)


def _text(m: Machine, node: ast.JoinedStr, scope: Scope) -> Value:
    parts: list[Value] = []
    for part in node.values:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        found = evaluate(m, inner, scope)
        spec = part.format_spec if isinstance(part, ast.FormattedValue) else None
        if spec is not None and not isinstance(found, Known):
            found = Result("builtins.format", args=(found, evaluate(m, spec, scope)))
        parts.append(found)
    if all(isinstance(p, Known) for p in parts):
        return Known("".join(str(p.value) for p in parts if isinstance(p, Known))[:MAX_TEXT])
    return Result("str.format", args=tuple(parts))


def _walrus(m: Machine, node: ast.NamedExpr, scope: Scope) -> Value:
    value = evaluate(m, node.value, scope)
    statements.bind(m, node.target, value, scope)
    return value


def _subscript(m: Machine, node: ast.Subscript, scope: Scope) -> Value:
    owner = evaluate(m, node.value, scope)
    key = evaluate(m, node.slice, scope)
    if isinstance(node.slice, ast.Slice) and isinstance(owner, Items):
        return _sliced(owner, node.slice, m, scope)
    some = iteration.sliced_layers(owner, key) if isinstance(node.slice, ast.Slice) else None
    if some is not None:
        return some
    own = calls.special(m, owner, "__getitem__", (key,), node, scope)
    if own is not None:
        return own
    found = iteration.get_item(m, owner, key)
    if isinstance(found, Result) and found.maker == "operator.getitem" and found.site is None:
        found.site = Site(scope.module, node)
        m.record(
            EventForm.CALL, found.site, found.maker, None, found.args, {}, scope.function, found
        )
    return found


def _sliced(owner: Items, node: ast.Slice, m: Machine, scope: Scope) -> Value:
    bounds = [n and evaluate(m, n, scope) for n in (node.lower, node.upper, node.step)]
    if owner.is_whole and all(b is None or isinstance(b, Known) for b in bounds):
        numbers = [b.value if isinstance(b, Known) else None for b in bounds]
        whole = [n for n in numbers if n is None or isinstance(n, int)]
        if len(whole) == len(numbers):
            return iteration.items_of(owner.members[slice(*whole)], owner.kind)
    return iteration.items_of(owner.members, owner.kind, is_whole=False)


def _slice(m: Machine, node: ast.Slice, scope: Scope) -> Value:
    bounds = [Known(None) if n is None else evaluate(m, n, scope)
              for n in (node.lower, node.upper, node.step)]  # fmt: skip
    return Result("builtins.slice", args=tuple(bounds))


def _yield(m: Machine, node: ast.Yield, scope: Scope) -> Value:
    value = Known(None) if node.value is None else evaluate(m, node.value, scope)
    if scope.consumer is not None:
        scope.consumer(value)
    return Unknown()


def _yield_from(m: Machine, node: ast.YieldFrom, scope: Scope) -> Value:
    over = evaluate(m, node.value, scope)
    loop = LoopRun(Site(scope.module, node), over)

    def body(element: Value) -> BlockEnd:
        if scope.consumer is not None:
            scope.consumer(element)
        return BlockEnd.NEXT

    iteration.run_over(m, loop, over, body, scope)
    return Unknown()


def _awaited(m: Machine, node: ast.Await, scope: Scope) -> Value:
    return evaluate(m, node.value, scope)


def _starred(m: Machine, node: ast.Starred, scope: Scope) -> Value:
    return evaluate(m, node.value, scope)


_RULES: dict[type[ast.expr], Callable[[Any, Any, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _either,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Lambda: _lambda,
    ast.JoinedStr: _text,
    ast.NamedExpr: _walrus,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: _awaited,
    ast.Starred: _starred,
}
