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


def _modules(tree: ast.Module) -> dict[str, str]:
    """The local names of torch, torch.nn and torch.nn.functional."""
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
