"""One operation in another spelling: as a layer, as a function, as a method."""

from __future__ import annotations

import ast

from bench.rewriting import scopes

LAYERS = {
    "relu": "ReLU", "gelu": "GELU", "softmax": "Softmax", "log_softmax": "LogSoftmax",
    "cross_entropy": "CrossEntropyLoss", "mse_loss": "MSELoss", "nll_loss": "NLLLoss",
    "l1_loss": "L1Loss", "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss", "tanh": "Tanh", "sigmoid": "Sigmoid",
}  # fmt: skip
INPUTS = {name: 2 if name.endswith(("loss", "entropy", "logits")) else 1 for name in LAYERS}
METHODS = frozenset(
    {"softmax", "sigmoid", "relu", "tanh", "exp", "log", "sqrt", "mean", "sum", "argmax", "abs",
     "log_softmax", "flatten", "squeeze", "unsqueeze", "clamp", "matmul", "mm", "bmm", "pow"}
)  # fmt: skip


def layers_for_functions(tree: ast.Module) -> bool:
    """`F.softmax(x, dim=1)` becomes `torch.nn.Softmax(dim=1)(x)`."""
    modules = _modules(tree)
    changed = False
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, owner = node.func.attr, node.func.value
        is_home = isinstance(owner, ast.Name) and modules.get(owner.id) in ("F", "torch")
        if name not in LAYERS or not is_home or len(node.args) < INPUTS[name]:
            continue
        inputs, settings = node.args[: INPUTS[name]], node.args[INPUTS[name] :]
        if any(isinstance(a, ast.Starred) for a in node.args) or (settings and "soft" not in name):
            continue
        if any(k.arg in ("input", "target") for k in node.keywords):
            continue
        layer = ast.Call(scopes.expression(f"torch.nn.{LAYERS[name]}"), settings, node.keywords)
        node.func, node.args, node.keywords = layer, inputs, []
        changed = True
    if changed:
        scopes.add_import(tree, "import torch.nn")
    return changed


def functions_for_layers(tree: ast.Module) -> bool:
    """`nn.CrossEntropyLoss()` under a name becomes `torch.nn.functional.cross_entropy`."""
    modules = _modules(tree)
    names = {layer: name for name, layer in LAYERS.items() if layer.endswith("Loss")}
    changed = False
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Assign) else None
        func = value.func if isinstance(value, ast.Call) else None
        if not isinstance(func, ast.Attribute) or not isinstance(value, ast.Call):
            continue
        is_home = isinstance(func.value, ast.Name) and modules.get(func.value.id) == "nn"
        is_plain = is_home and not value.args and not value.keywords
        if is_plain and func.attr in names and isinstance(node, ast.Assign):
            node.value = scopes.expression(f"torch.nn.functional.{names[func.attr]}")
            changed = True
    if changed:
        scopes.add_import(tree, "import torch.nn.functional")
    return changed


def methods_for_functions(tree: ast.Module) -> bool:
    """`torch.softmax(x, 1)` becomes `x.softmax(1)`."""
    modules = _modules(tree)
    changed = False
    for node in ast.walk(tree):
        func = node.func if isinstance(node, ast.Call) else None
        if not isinstance(func, ast.Attribute) or not isinstance(node, ast.Call):
            continue
        is_home = isinstance(func.value, ast.Name) and modules.get(func.value.id) == "torch"
        first = node.args[0] if node.args else None
        is_tensor = isinstance(first, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
        if is_home and func.attr in METHODS and is_tensor and first is not None:
            func.value = first
            node.args = node.args[1:]
            changed = True
    return changed


OPERATORS: dict[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "div": ast.Div, "matmul": ast.MatMult,
    "mm": ast.MatMult, "bmm": ast.MatMult, "pow": ast.Pow,
}  # fmt: skip
COMPARISONS: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "gt": ast.Gt, "le": ast.LtE, "ge": ast.GtE,
}  # fmt: skip
OF_TENSORS = frozenset({"sum", "mean", "float", "item", "backward", "abs", "sqrt", "view", "exp"})


def operators_for_methods(tree: ast.Module) -> bool:
    """`a.mul(b)` and `torch.mul(a, b)` become `a * b`."""
    made = _Operators(_modules(tree))
    made.visit(tree)
    return made.has_changed


class _Operators(ast.NodeTransformer):
    def __init__(self, modules: dict[str, str]) -> None:
        self.modules, self.has_changed = modules, False

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        self.generic_visit(node.value)  # not itself: `found.add(x)` changes its owner
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        func = node.func
        if not isinstance(func, ast.Attribute) or node.keywords:
            return node
        is_torch = isinstance(func.value, ast.Name) and func.value.id in self.modules
        operands = node.args if is_torch else [func.value, *node.args]
        if len(operands) != 2 or any(isinstance(o, ast.Starred) for o in operands):
            return node
        if func.attr in OPERATORS:
            self.has_changed = True
            return ast.BinOp(operands[0], OPERATORS[func.attr](), operands[1])
        if func.attr in COMPARISONS:
            self.has_changed = True
            return ast.Compare(operands[0], [COMPARISONS[func.attr]()], [operands[1]])
        return node


def methods_for_operators(tree: ast.Module) -> bool:
    """`(a == b).sum()` becomes `a.eq(b).sum()`, where no arrays of numpy are about."""
    text = ast.unparse(tree)
    if "numpy" in text or "sklearn" in text:
        return False
    changed = False
    for node in ast.walk(tree):
        is_method = isinstance(node, ast.Attribute) and node.attr in OF_TENSORS
        new = _as_method(node.value) if is_method and isinstance(node, ast.Attribute) else None
        if new is not None and isinstance(node, ast.Attribute):
            node.value = new
            changed = True
    return changed


def _as_method(node: ast.expr) -> ast.Call | None:
    left: ast.expr | None = None
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
        found = [n for n, kind in OPERATORS.items() if isinstance(node.op, kind)]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = node.left, node.comparators[0]
        found = [n for n, kind in COMPARISONS.items() if isinstance(node.ops[0], kind)]
    if not isinstance(left, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)) or not found:
        return None
    return ast.Call(ast.Attribute(left, found[0], ast.Load()), [right], [])


def _modules(tree: ast.Module) -> dict[str, str]:
    """The local names of torch, torch.nn and torch.nn.functional; one that is hidden is none."""
    hidden = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not _is_read(n)}
    return {name: home for name, home in _imported_modules(tree).items() if name not in hidden}


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _imported_modules(tree: ast.Module) -> dict[str, str]:
    known = {"torch": "torch", "torch.nn": "nn", "torch.nn.functional": "F"}
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.asname and item.name in known:
                    found[item.asname] = known[item.name]
                elif item.name.startswith("torch"):
                    found["torch"] = "torch"
        elif isinstance(node, ast.ImportFrom) and node.module in ("torch", "torch.nn"):
            for item in node.names:
                meaning = known.get(f"{node.module}.{item.name}")
                if meaning:
                    found[item.asname or item.name] = meaning
    return found
