"""The width of a model's output, and whether a tensor is one flat row of numbers."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from traindx.source.loaders import loaders_in, resolve
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

DEEP = 10  # assignments and modules followed
SAME_SHAPE = frozenset(
    {"relu", "sigmoid", "tanh", "softplus", "elu", "gelu", "leaky_relu", "dropout", "float", "to",
     "cuda", "cpu", "double", "half", "exp", "abs", "clamp", "silu", "contiguous"}
)  # fmt: skip
SAME_SHAPE_LAYERS = frozenset(
    {"ReLU", "Sigmoid", "Tanh", "Softplus", "ELU", "GELU", "LeakyReLU", "Dropout", "SiLU",
     "Identity"}
)  # fmt: skip
SPLIT = "train_test_split"
FLAT_MAKERS = frozenset({"randn", "rand", "zeros", "ones", "arange", "linspace", "empty"})
RESHAPES = ("unsqueeze_", "resize_", "resize_as_")
ORDERS = frozenset({"torch.randperm", "numpy.random.permutation"})


@dataclass(frozen=True, slots=True)
class Output:
    """The last linear layer of a model, whose output reaches a place in its own shape."""

    units: int
    module: Module
    layer: ast.Call


def output_of(
    project: Project, module: Module, at: ast.AST, node: ast.expr, depth: int = DEEP
) -> Output | None:
    """Say which linear layer an expression is the output of; None once its shape is changed."""
    if depth == 0:
        return None
    if isinstance(node, ast.Call):
        return _of_call(project, module, at, node, depth)
    key = key_of(node)
    if key is None or isinstance(node, ast.Subscript):
        return None
    before = [v for v in project.lookup(module, at, key) if v.lineno <= node.lineno]
    earlier = [v for v in before if (v.end_lineno or v.lineno) < node.lineno]
    if not earlier:
        return None
    return output_of(project, module, at, max(earlier, key=lambda v: v.lineno), depth - 1)


def _of_call(
    project: Project, module: Module, at: ast.AST, call: ast.Call, depth: int
) -> Output | None:
    name = module.qualified(call.func) or ""
    last = name.rsplit(".", 1)[-1]
    if name.startswith("torch.") and last in SAME_SHAPE and call.args:
        return output_of(project, module, at, call.args[0], depth - 1)
    if isinstance(call.func, ast.Attribute) and call.func.attr in SAME_SHAPE:
        return output_of(project, module, at, call.func.value, depth - 1)
    if isinstance(call.func, ast.Subscript):
        return None  # one of several layers
    value = value_of(project, module, at, call.func)
    if value.kind is not Kind.MODEL or value.call is None or not value.is_certain:
        return None
    if value.made_by.rsplit(".", 1)[-1] in SAME_SHAPE_LAYERS and call.args:
        return output_of(project, module, at, call.args[0], depth - 1)
    home = next((m for m in (module, *project.modules) if value.call in m.parents), module)
    return _of_module(project, home, value.call, depth - 1)


def _of_module(project: Project, module: Module, made: ast.Call, depth: int) -> Output | None:
    name = module.qualified(made.func) or ""
    last = name.rsplit(".", 1)[-1]
    is_layer = name.startswith(("torch.nn.", "nn."))
    if is_layer and last == "Linear":
        units = literal(argument(made, "out_features", 1))
        return Output(units, module, made) if isinstance(units, int) else None
    if is_layer and last == "Sequential" and made.args:
        tail = [a for a in made.args if not _is_same_shape_layer(module, a)]
        if tail and isinstance(tail[-1], ast.Call):
            return _of_module(project, module, tail[-1], depth - 1)
        return None
    found = project.find_class(module, name) if depth > 0 else None
    if found is None or not project.is_module(*found):
        return None
    return _of_forward(project, found[0], found[1], depth - 1)


def _is_same_shape_layer(module: Module, node: ast.expr) -> bool:
    name = (module.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
    return name.startswith(("torch.nn.", "nn.")) and name.rsplit(".", 1)[-1] in SAME_SHAPE_LAYERS


def _of_forward(project: Project, module: Module, cls: ast.ClassDef, depth: int) -> Output | None:
    forward = module.functions.get(f"{module.dotted(cls)}.forward")
    if forward is None:
        return None
    returns = [n.value for n in ast.walk(forward) if isinstance(n, ast.Return)]
    if len(returns) != 1 or returns[0] is None:
        return None
    return output_of(project, module, forward, returns[0], depth)


def is_flat(project: Project, module: Module, at: ast.AST, node: ast.expr) -> ast.expr | None:
    """Return what shows that a tensor has one dimension only; None where that is not certain."""
    whole = _unsliced(project, module, at, node)
    key = None if isinstance(whole, ast.Subscript) else key_of(whole)
    if key is not None and (loop := _loop_of(module, node, key)) is not None:
        return _flat_from_loader(project, module, at, loop, key)
    return _flat_tensor(project, module, at, whole)


def _flat_tensor(project: Project, module: Module, at: ast.AST, node: ast.expr) -> ast.expr | None:
    """The call that made a tensor, where it has one dimension and keeps it on the way here."""
    if is_grown(project, module, at, node):
        return None
    made = _made(project, module, at, node)
    is_certain = isinstance(made, ast.Call) and _is_flat_value(project, module, at, made)
    return made if is_certain else None


def is_grown(project: Project, module: Module, at: ast.AST, node: ast.expr) -> bool:
    """Tell whether a tensor gets another shape in place, under any of its names."""
    for _ in range(DEEP):
        key = key_of(node)
        if key is None:
            return False
        if any(f"{key}.{m}(" in module.text for m in RESHAPES):
            return True
        found = [v for v in project.lookup(module, at, key) if v is not node]
        if len(found) != 1:
            return False
        node = found[0]
    return False


def _made(project: Project, module: Module, at: ast.AST, node: ast.expr) -> ast.expr | None:
    """What a name stands for, where it is bound once; parts are followed if they keep the rank."""
    for _ in range(4):
        node = _unsliced(project, module, at, node)
        key = None if isinstance(node, (ast.Call, ast.Subscript)) else key_of(node)
        if key is None:
            return node
        found = [v for v in project.lookup(module, at, key) if v is not node]
        if not found and not isinstance(node, ast.Name):
            return node
        if len(found) != 1:
            return None
        node = found[0]
    return node


def _unsliced(project: Project, module: Module, at: ast.AST, node: ast.expr) -> ast.expr:
    """The whole of which an expression takes rows: `y[a:b]`, `y[order]`, not `y[:, None]`."""
    while isinstance(node, ast.Subscript) and _takes_rows(project, module, at, node.slice):
        node = node.value
    return node


def _takes_rows(project: Project, module: Module, at: ast.AST, index: ast.expr) -> bool:
    if isinstance(index, ast.Slice):
        return True
    known = project.lookup(module, at, index.id) if isinstance(index, ast.Name) else []
    return bool(known) and all(_is_order(module, v) for v in known)


def _is_order(module: Module, node: ast.expr) -> bool:
    """`torch.randperm(n)` and a slice of it: indices in one dimension."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        node = node.value
    name = (module.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
    return name in ORDERS


def _loop_of(module: Module, node: ast.AST, key: str) -> ast.For | None:
    for above in module.enclosing(node):
        if isinstance(above, ast.For) and key in {key_of(n) for n in ast.walk(above.target)}:
            return above
    return None


def _flat_from_loader(
    project: Project, module: Module, at: ast.AST, loop: ast.For, key: str
) -> ast.expr | None:
    """The column of a TensorDataset that a loop over its loader unpacks under a name."""
    grows = any(f"{key}.{m}(" in module.text for m in RESHAPES)
    if grows or any(_changes(n, key) for n in ast.walk(loop)):
        return None
    names = _unpacked(loop)
    iterated = (
        loop.iter.args[0] if isinstance(loop.iter, ast.Call) and loop.iter.args else loop.iter
    )
    loader = resolve(project, module, at, iterated)
    known = next((x for x in loaders_in(project) if x.call is loader), None)
    if known is None or key not in names:
        return None
    dataset = resolve(project, module, known.scope, known.dataset)
    if not isinstance(dataset, ast.Call) or len(dataset.args) != len(names):
        return None
    if (module.qualified(dataset.func) or "").rsplit(".", 1)[-1] != "TensorDataset":
        return None
    return _flat_tensor(project, module, known.scope, dataset.args[names.index(key)])


def _unpacked(loop: ast.For) -> list[str]:
    target: ast.expr = loop.target
    is_counted = isinstance(loop.iter, ast.Call) and key_of(loop.iter.func) == "enumerate"
    if is_counted and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    elts = target.elts if isinstance(target, ast.Tuple) else []
    return [key_of(e) or "" for e in elts]


def _changes(node: ast.AST, key: str) -> bool:
    """Tell whether a statement gives a name another shape; a move or cast does not."""
    if not isinstance(node, (ast.Assign, ast.AugAssign)):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = {key_of(n) for t in targets for n in ast.walk(t)}
    if key not in names:
        return False
    return any(_may_reshape(n) for n in ast.walk(node.value))


def _may_reshape(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id != "Variable"
    if isinstance(node, ast.Attribute):
        return node.attr not in {"to", "cuda", "float", "device", "self", "double", "float32"}
    return isinstance(node, ast.Subscript)


def _is_flat_value(project: Project, module: Module, at: ast.AST, node: ast.expr) -> bool:
    """`torch.randn(100)`, `torch.tensor(frame["y"].values)`: one dimension, for certain."""
    if not isinstance(node, ast.Call):
        return is_column(project, module, at, node)
    name = module.qualified(node.func) or ""
    last = name.rsplit(".", 1)[-1]
    if name.startswith("torch.") and last in FLAT_MAKERS:
        sizes = [a for a in node.args if not isinstance(a, ast.Starred)]
        if last in ("arange", "linspace"):
            return True
        return len(sizes) == 1 and isinstance(sizes[0], ast.Constant)
    if name in ("torch.tensor", "torch.from_numpy", "torch.as_tensor", "torch.FloatTensor"):
        return bool(node.args) and _is_flat_inside(project, module, at, node.args[0])
    method = node.func if isinstance(node.func, ast.Attribute) else None
    if method is None or method.attr not in ("to_numpy", "float", "astype", "to", "values"):
        return False
    return _is_flat_inside(project, module, at, method.value)


def _is_flat_inside(project: Project, module: Module, at: ast.AST, node: ast.expr) -> bool:
    inner = _made(project, module, at, node)
    if isinstance(inner, ast.Call) and (module.qualified(inner.func) or "").endswith(SPLIT):
        inner = _split_part(module, inner, key_of(node))
        return inner is not None and _is_flat_inside(project, module, at, inner)
    return inner is not None and _is_flat_value(project, module, at, inner)


def _split_part(module: Module, split: ast.Call, name: str | None) -> ast.expr | None:
    """What was split into a name: `a, b, c, d = train_test_split(x, y)` halves each argument."""
    above = module.parents.get(split)
    target = above.targets[0] if isinstance(above, ast.Assign) else None
    names = [key_of(e) for e in target.elts] if isinstance(target, ast.Tuple) else []
    if name not in names or len(names) != 2 * len(split.args):
        return None
    return split.args[names.index(name) // 2]


def is_column(project: Project, module: Module, at: ast.AST, node: ast.expr) -> bool:
    """`frame["price"].values`, or `frame["price"]` of a table in sight: a column by its name.

    An entry of a dictionary looks the same and has any shape.
    """
    if isinstance(node, ast.Attribute) and node.attr == "values":
        node = node.value
    if not isinstance(node, ast.Subscript) or not isinstance(literal(node.slice), str):
        return False
    above = module.parents.get(node)
    if isinstance(above, ast.Attribute) and above.attr in ("values", "to_numpy"):
        return True
    known = resolve(project, module, at, node.value)
    name = (module.qualified(known.func) or "") if isinstance(known, ast.Call) else ""
    return name.startswith("pandas.")
