"""What the last thing is that happens to a value before it is returned or handed to a loss."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from traindx.source.arguments import handed_over
from traindx.source.module import Function, Module, key_of, literal
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

# what leaves the nature of its input as it is: shape changes, indexing by methods
KEEPS = frozenset(
    {"squeeze", "unsqueeze", "view", "reshape", "flatten", "transpose", "permute", "contiguous",
     "float", "to", "cuda", "cpu", "t", "clone", "half", "double", "type", "expand"}
)  # fmt: skip
ACTIVATIONS = {
    "softmax": "softmax", "Softmax": "softmax", "Softmax2d": "softmax",
    "log_softmax": "log_softmax", "LogSoftmax": "log_softmax",
    "sigmoid": "sigmoid", "Sigmoid": "sigmoid", "logsigmoid": "log_sigmoid",
    "relu": "relu", "ReLU": "relu", "tanh": "tanh", "Tanh": "tanh",
    "Linear": "linear", "linear": "linear", "Conv2d": "convolution", "Conv1d": "convolution",
    "LazyLinear": "linear", "Bilinear": "linear",
}  # fmt: skip
DEEP = 12  # assignments and modules followed before giving up

# which part of a tuple is meant, from the outside in: `net(x)[1]` is (1,); None is a part unknown
Picks = tuple[int | None, ...]
# the branches a node stands in: the `if` and whether it is its body or its `else`
Branches = dict[ast.AST, str]


@dataclass(frozen=True, slots=True)
class Ending:
    """The operation that a value ends with (`softmax`, `linear` …), and where it stands."""

    operation: str
    module: Module
    node: ast.AST


def ending_of(
    project: Project,
    module: Module,
    at: ast.AST,
    node: ast.expr,
    depth: int = DEEP,
    picks: Picks = (),
) -> Ending | None:
    """Say what an expression, or the part of it that is picked, ends with.

    None where that cannot be followed, and for a tuple of which no part is picked.
    """
    if depth == 0:
        return None
    if isinstance(node, (ast.Tuple, ast.List)):
        part = _part(node, picks)
        return None if part is None else ending_of(project, module, at, part, depth - 1, picks[1:])
    if isinstance(node, ast.Subscript):
        if isinstance(literal(node.slice), str):
            return None  # of a dict, whose values are not followed
        picks = (*_index(node.slice), *picks)
        return ending_of(project, module, at, node.value, depth - 1, picks)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _of_name(project, module, at, node, depth, picks)
    if isinstance(node, ast.Call):
        return _of_call(project, module, at, node, depth, picks)
    return None


def _part(node: ast.Tuple | ast.List, picks: Picks) -> ast.expr | None:
    index = picks[0] if picks else None
    if index is None or any(isinstance(e, ast.Starred) for e in node.elts):
        return None
    return node.elts[index] if -len(node.elts) <= index < len(node.elts) else None


def _index(node: ast.expr) -> Picks:
    """Return the part that a subscript picks; none where it cuts a tensor: `out[:, 0]`."""
    if isinstance(node, (ast.Slice, ast.Tuple)):
        return ()
    index = literal(node)
    return (index if isinstance(index, int) else None,)


def _of_name(
    project: Project, module: Module, at: ast.AST, node: ast.expr, depth: int, picks: Picks
) -> Ending | None:
    key = key_of(node)
    if key is None:
        return None
    line = getattr(node, "lineno", 0)
    earlier = [v for v in project.lookup(module, at, key) if v.lineno <= line and v is not node]
    before = [v for v in earlier if (v.end_lineno or v.lineno) < line] or earlier
    if _is_looped_over(module, node, key, since=max((v.lineno for v in before), default=0)):
        return None
    if not before:
        return _of_callers(project, module, at, key, depth, picks) if not earlier else None
    return _agreed(
        [
            None
            if value is None
            else ending_of(
                project, module, at, value, depth - 1, (*_unpacked(module, value, key), *picks)
            )
            for value in _last_values(module, at, node, before)
        ]
    )


def _is_looped_over(module: Module, node: ast.AST, key: str, since: int) -> bool:
    """Tell whether a loop gives a name its value, after the last assignment or around the use."""
    within = module.function_of(node)
    every: list[ast.For | ast.AsyncFor] = [*module.nodes(ast.For), *module.nodes(ast.AsyncFor)]
    loops = [
        n.target
        for n in every
        if since <= n.lineno < getattr(node, "lineno", 0) and module.function_of(n) is within
    ]
    loops += [
        generator.target
        for n in module.enclosing(node)
        if isinstance(n, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp))
        for generator in n.generators
    ]
    return any(key == key_of(n) for target in loops for n in ast.walk(target))


def _last_values(
    module: Module, at: ast.AST, use: ast.expr, values: Sequence[ast.expr]
) -> list[ast.expr | None]:
    """Return what a name may hold where it is used: the last value, and those it may replace.

    None stands for what a caller gave, where no assignment is sure to replace that.
    """
    here = _branches(module, use)
    found: list[ast.expr | None] = []
    for value in sorted(values, key=lambda v: v.lineno, reverse=True):
        there = _branches(module, value)
        if any(here.get(test, side) != side for test, side in there.items()):
            continue  # in the other branch of an `if` around both
        found.append(value)
        if there.keys() <= here.keys():
            return found
    return [*found, None] if _is_parameter(at, key_of(use)) or not found else found


def _branches(module: Module, node: ast.AST) -> Branches:
    found: Branches = {}
    below = node
    for above in module.enclosing(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        if isinstance(above, ast.If):
            found[above] = "else" if below in above.orelse else "body"
        elif isinstance(above, (ast.ExceptHandler, ast.match_case)):
            found[above] = "body"
        below = above
    return found


def _is_parameter(at: ast.AST, key: str | None) -> bool:
    if not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return any(isinstance(n, ast.arg) and n.arg == key for n in ast.walk(at.args))


def _unpacked(module: Module, value: ast.expr, key: str) -> Picks:
    """Return which part of a value a name is given: `probs, logits = net(x)`."""
    above = module.parents.get(value)
    if not isinstance(above, ast.Assign) or above.value is not value:
        return ()
    for target in above.targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        if any(key == key_of(n) for part in parts for n in ast.walk(part)):
            names = [
                None if isinstance(p, (ast.Starred, ast.Subscript)) else key_of(p) for p in parts
            ]
            is_plain = key in names and not any(isinstance(p, ast.Starred) for p in parts)
            return (names.index(key) if is_plain else None,)
    return ()


def _of_call(
    project: Project, module: Module, at: ast.AST, call: ast.Call, depth: int, picks: Picks
) -> Ending | None:
    name = module.qualified(call.func) or ""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    last = method or name.rsplit(".", 1)[-1]
    is_torch = name.startswith("torch.") or "functional" in name
    if last in ACTIVATIONS and (is_torch or last.islower()) and not _is_own(project, module, name):
        return Ending(ACTIVATIONS[last], module, call)
    if method in KEEPS and isinstance(call.func, ast.Attribute):
        return ending_of(project, module, at, call.func.value, depth - 1, picks)
    if name in {"torch.squeeze", "torch.flatten", "torch.reshape", "torch.unsqueeze"} and call.args:
        return ending_of(project, module, at, call.args[0], depth - 1, picks)
    return _of_module_call(project, module, at, call, depth, picks)


def _is_own(project: Project, module: Module, name: str) -> bool:
    return project.find_function(module, name) is not None


def _of_module_call(
    project: Project, module: Module, at: ast.AST, call: ast.Call, depth: int, picks: Picks
) -> Ending | None:
    """What a module ends with, where a value is the output of calling one."""
    callee = call.func
    if isinstance(callee, ast.Call):  # nn.Softmax(dim=1)(x)
        return ending_of_module(project, module, at, callee, depth - 1, picks)
    if key_of(callee) in ("self", "self.forward"):  # as in the steps of a Lightning module
        cls = module.class_of(call)
        is_own = cls is not None and project.is_module(module, cls)
        if cls is None or not is_own:
            return None
        return ending_of_forward(project, module, cls, depth - 1, picks)
    if isinstance(callee, ast.Attribute) and callee.attr == "forward":
        callee = callee.value
    if isinstance(callee, ast.Subscript):
        part = layer_at(project, module, at, callee)
        return (
            None if part is None else ending_of_module(project, module, at, part, depth - 1, picks)
        )
    value = value_of(project, module, at, callee)
    if value.kind is Kind.MODEL and value.call is not None:
        return ending_of_module(
            project, _home(project, module, value.call), at, value.call, depth - 1, picks
        )
    key = key_of(callee)
    if value.kind is not Kind.MODEL or key is None:
        return None
    made = [(m, value_of(project, m, s, n)) for m, s, n in handed_over(project, module, at, key)]
    endings = [
        None
        if v.kind is not Kind.MODEL or v.call is None
        else ending_of_module(project, _home(project, m, v.call), at, v.call, depth - 1, picks)
        for m, v in made
    ]
    return _agreed(endings)


def layer_at(project: Project, module: Module, at: ast.AST, node: ast.Subscript) -> ast.Call | None:
    """The layer of a Sequential in this file that an index picks: `self.head[0]`."""
    made = value_of(project, module, at, node.value).call
    index = literal(node.slice)
    is_chain = made is not None and (module.qualified(made.func) or "").endswith("Sequential")
    if not is_chain or made is None or made not in module.parents or not isinstance(index, int):
        return None
    is_inside = -len(made.args) <= index < len(made.args)
    part = made.args[index] if is_inside else None
    return part if isinstance(part, ast.Call) else None


def _of_callers(
    project: Project, module: Module, at: ast.AST, key: str, depth: int, picks: Picks
) -> Ending | None:
    """What a parameter ends with, where all callers agree."""
    handed = handed_over(project, module, at, key)
    return _agreed(
        [ending_of(project, m, scope, node, depth - 1, picks) for m, scope, node in handed]
    )


def _agreed(endings: Sequence[Ending | None]) -> Ending | None:
    operations = {None if e is None else e.operation for e in endings}
    return endings[0] if len(operations) == 1 else None


def _home(project: Project, module: Module, call: ast.Call) -> Module:
    """The file in which a call stands."""
    holders = (m for m in project.modules if call in m.parents)
    return next(holders, module)


def ending_of_module(
    project: Project,
    module: Module,
    at: ast.AST,
    made: ast.Call,
    depth: int = DEEP,
    picks: Picks = (),
) -> Ending | None:
    """Say what the output of a module ends with, from the call that makes the module."""
    if depth == 0:
        return None
    name = module.qualified(made.func) or ""
    last = name.rsplit(".", 1)[-1]
    if last == "Sequential" and made.args and not isinstance(made.args[-1], ast.Starred):
        tail = made.args[-1]
        if isinstance(tail, ast.Call):
            return ending_of_module(project, module, at, tail, depth - 1, picks)
        return None
    if last in ACTIVATIONS and name.startswith(("torch.nn.", "nn.")):
        return Ending(ACTIVATIONS[last], module, made)
    found = project.find_class(module, name)
    if found is None or not project.is_module(*found):
        return None
    return ending_of_forward(project, found[0], found[1], depth - 1, picks)


def ending_of_forward(
    project: Project, module: Module, cls: ast.ClassDef, depth: int = DEEP, picks: Picks = ()
) -> Ending | None:
    """Say what a module class's `forward` returns, where all its returns agree.

    A return of a tuple is not the one taken where the output is used as it is.
    """
    forward = module.functions.get(f"{module.dotted(cls)}.forward")
    if forward is None:
        return None
    returns = [n.value for n in _own_returns(forward) if n.value is not None]
    if not picks:
        returns = [v for v in returns if not isinstance(v, ast.Tuple)]
    endings = [ending_of(project, module, forward, value, depth - 1, picks) for value in returns]
    return _agreed(endings)


def _own_returns(function: Function) -> list[ast.Return]:
    inner = [n for n in ast.walk(function) if isinstance(n, (ast.FunctionDef, ast.Lambda))]
    hidden = {n for f in inner if f is not function for n in ast.walk(f)}
    return [n for n in ast.walk(function) if isinstance(n, ast.Return) and n not in hidden]
