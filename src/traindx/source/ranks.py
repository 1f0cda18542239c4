"""The dimensions of a tensor in plain code, as far as the expressions that make it say them.

`None` in a shape is a size that is not known; no shape at all where the number of dimensions is
not certain. Dimensions that are added on purpose (`x[:, None]`, `unsqueeze`) are left open.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from traindx.source.arguments import handed_over
from traindx.source.columns import SAME_SHAPE, SAME_SHAPE_LAYERS, output_of
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

Dims = tuple[int | None, ...]
DEEP = 14  # assignments and calls followed
FILLED = frozenset({"randn", "rand", "zeros", "ones", "empty"})
ROWS = {"arange": 0, "linspace": 2, "randperm": 0}  # where the number of values stands
WRAPS = frozenset(
    {"tensor", "Tensor", "FloatTensor", "DoubleTensor", "as_tensor", "from_numpy", "Variable",
     "Parameter", "array", "asarray"}
)  # fmt: skip
KEEPS = SAME_SHAPE | frozenset(
    {"clone", "detach", "requires_grad_", "type", "astype", "numpy", "add_", "sub_", "mul_",
     "normal_", "uniform_", "clip", "log", "sqrt", "copy", "add", "mul"}
)  # fmt: skip


class Ranks:
    """Reads shapes at one place of a project; a value per question, no state between them."""

    def __init__(self, project: Project, module: Module, at: ast.AST) -> None:
        self.project, self.module, self.at = project, module, at

    def of(self, node: ast.expr, depth: int = DEEP) -> Dims | None:
        """Return the shape of an expression, or None where it is not certain."""
        if depth == 0:
            return None
        if isinstance(node, ast.Constant):
            return () if isinstance(node.value, (int, float)) else None
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand, depth - 1)
        if isinstance(node, ast.BinOp):
            left, right = self.of(node.left, depth - 1), self.of(node.right, depth - 1)
            join = _product if isinstance(node.op, ast.MatMult) else _broadcast
            return None if left is None or right is None else join(left, right)
        if isinstance(node, ast.Subscript):
            return self._of_part(node, depth)
        if isinstance(node, ast.Call):
            return self._of_call(node, depth)
        return self._of_name(node, depth)

    def _of_name(self, node: ast.expr, depth: int) -> Dims | None:
        key = key_of(node)
        if isinstance(node, ast.Attribute) and node.attr in ("values", "data"):
            return self.of(node.value, depth - 1)
        if key is None:
            return None
        known = self.project.lookup(self.module, self.at, key)
        before = [v for v in known if (v.end_lineno or v.lineno) < node.lineno]
        if before:
            return self.of(max(before, key=lambda v: v.lineno), depth - 1)
        handed = [] if known else handed_over(self.project, self.module, self.at, key)
        shapes = {Ranks(self.project, m, scope).of(n, depth - 1) for m, scope, n in handed}
        return shapes.pop() if len(shapes) == 1 else None

    def _of_part(self, node: ast.Subscript, depth: int) -> Dims | None:
        if isinstance(literal(node.slice), str):
            return (None,)  # a column of a table
        whole = node.value
        if isinstance(whole, ast.Attribute) and whole.attr in ("iloc", "loc"):
            whole = whole.value
        shape = self.of(whole, depth - 1)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if shape is None or len(parts) > len(shape):
            return None
        kept: list[int | None] = []
        for size, part in zip(shape, parts, strict=False):
            if isinstance(part, ast.Slice):
                kept.append(_span(part, size))
            elif not isinstance(literal(part), int) or isinstance(literal(part), bool):
                return None
        return (*kept, *shape[len(parts) :])

    def _of_call(self, call: ast.Call, depth: int) -> Dims | None:
        name = self.module.qualified(call.func) or ""
        last = name.rsplit(".", 1)[-1]
        is_library = name.startswith(("torch.", "numpy."))
        if is_library and last in FILLED:
            return self._sizes(call.args, depth)
        if is_library and last in ROWS:
            size = self._number(call.args[ROWS[last]]) if len(call.args) > ROWS[last] else None
            is_whole = size is not None and len(call.args) == ROWS[last] + 1
            return (size,) if is_whole else None
        if is_library and last in WRAPS and len(call.args) >= 1:
            nested = _nested(literal(call.args[0]))
            return nested or self.of(call.args[0], depth - 1)
        if name == "pandas.read_csv":
            return (None, None)
        if is_library and last in ("mm", "matmul") and len(call.args) == 2:
            return self.of(ast.BinOp(call.args[0], ast.MatMult(), call.args[1]), depth - 1)
        if is_library and last in ("cat", "concat") and call.args:
            return self._joined(call, depth)
        if is_library and last in KEEPS and call.args:
            return self.of(call.args[0], depth - 1)
        return self._of_method(call, depth) or self._of_model(call, depth)

    def _joined(self, call: ast.Call, depth: int) -> Dims | None:
        node, given = call.args[0], argument(call, "dim", 1)
        dim = 0 if given is None and not call.keywords else literal(given)
        first = node.elts[0] if isinstance(node, (ast.Tuple, ast.List)) and node.elts else None
        shape = None if first is None else self.of(first, depth - 1)
        if not shape or not isinstance(dim, int):
            return None if shape is None else (None,) * len(shape)
        grown = dim % len(shape)
        return tuple(None if i == grown else s for i, s in enumerate(shape))

    def _of_method(self, call: ast.Call, depth: int) -> Dims | None:
        if not isinstance(call.func, ast.Attribute):
            return None
        method, owner = call.func.attr, call.func.value
        if method in KEEPS:
            return self.of(owner, depth - 1)
        if method in ("view", "reshape"):
            return self._sizes(call.args, depth)
        if method in ("mm", "matmul") and len(call.args) == 1:
            return self.of(ast.BinOp(owner, ast.MatMult(), call.args[0]), depth - 1)
        if method in ("flatten", "ravel") and not call.args:
            return (None,)
        shape = self.of(owner, depth - 1) if method in ("squeeze", "t", "to_numpy") else None
        if shape is not None and method == "squeeze":
            where = literal(argument(call, "dim", 0))
            return tuple(s for i, s in enumerate(shape) if s != 1 or where not in (None, i))
        return shape[::-1] if shape is not None and method == "t" else shape

    def _of_model(self, call: ast.Call, depth: int) -> Dims | None:
        value = value_of(self.project, self.module, self.at, call.func)
        if value.kind is not Kind.MODEL or not value.is_certain or not call.args:
            return None
        given = self.of(call.args[0], depth - 1)
        if value.made_by.rsplit(".", 1)[-1] in SAME_SHAPE_LAYERS:
            return given
        output = output_of(self.project, self.module, self.at, call)
        return None if output is None or not given else (*given[:-1], output.units)

    def _sizes(self, args: Sequence[ast.expr], depth: int) -> Dims | None:
        """The sizes that a tensor is made with: numbers, names of numbers, or one tuple."""
        if len(args) == 1 and isinstance(args[0], (ast.Tuple, ast.List)):
            args = args[0].elts
        elif len(args) == 1 and not isinstance(self._number(args[0]), int):
            return None  # a name that may hold a tuple
        if not args or any(isinstance(a, ast.Starred) for a in args):
            return None
        sizes = (self._number(a) for a in args)
        return tuple(None if s is None or s < 0 else s for s in sizes)

    def _number(self, node: ast.expr) -> int | None:
        value = literal(node)
        if value is None and isinstance(node, ast.Name):
            known = self.project.lookup(self.module, self.at, node.id)
            value = literal(known[0]) if len(known) == 1 else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def _nested(value: object) -> Dims | None:
    """The shape of a literal list of numbers, or of lists of them."""
    shape: list[int | None] = []
    while isinstance(value, (list, tuple)) and value:
        shape.append(len(value))
        value = value[0]
    return tuple(shape) if shape and isinstance(value, (int, float)) else None


def _span(part: ast.Slice, size: int | None) -> int | None:
    low = 0 if part.lower is None else literal(part.lower)
    high = literal(part.upper) if part.upper is not None else None
    if part.lower is None and part.upper is None:
        return size
    is_plain = isinstance(low, int) and isinstance(high, int) and part.step is None
    return high - low if is_plain and 0 <= low < high else None  # type: ignore[operator]


def _broadcast(left: Dims, right: Dims) -> Dims | None:
    """The shape of an elementwise operation; sizes that would clash make it uncertain."""
    wide, narrow = (left, right) if len(left) >= len(right) else (right, left)
    padded = (1,) * (len(wide) - len(narrow)) + narrow
    pairs = zip(wide, padded, strict=True)
    return tuple(b if a == 1 else a if b in (1, a) else None for a, b in pairs)


def _product(left: Dims, right: Dims) -> Dims | None:
    if not left or not right:
        return None
    return (*left[:-1], *(right[-1:] if len(right) > 1 else ()))
