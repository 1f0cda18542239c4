"""A tensor's move to the device is computed and thrown away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.devices import FACTORIES
from traindx.source.loaders import loaders_in
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.patches import diff, replacing
from traindx.source.project import Project

WRAPS = frozenset({"enumerate", "tqdm", "trange", "iter", "track", "progress_bar", "islice"})
MAPPING = frozenset({"items", "keys", "values", "get", "pop", "convert_to_tensors"})
OF_TENSORS = frozenset(
    {"shape", "device", "dtype", "T", "mT", "data", "grad", "is_cuda", "ndim", "requires_grad",
     "layout", "real", "imag", "H", "nbytes", "itemsize", "is_leaf"}
)  # fmt: skip
OWN_BATCHES = frozenset({"transformers", "tokenizers", "torch_geometric", "torchdrug", "ocpmodels"})
LABELS = frozenset({"y", "label", "labels", "target", "targets"})


@detector(needs=("source",), suggests=("device-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """A tensor is moved to a device and the result is dropped.

    ## What it detects
    `x.to(device)` or `x.cuda()` as a statement of its own, where `x` is a tensor: unpacked from a
    loader with others, or made by a function of torch.

    ## Why it matters
    A module moves in place, a tensor does not: the call returns the moved tensor. `x` stays where
    it was, and the next operation with the model fails.

    ## What to do
    Keep the result: `x = x.to(device)`.

    ## When it is wrong
    Batches of their own class (tokenizer output, graphs) may move in place; a name that is the
    whole batch is left alone, and so is a part of it that is used as a mapping (`**enc`,
    `enc["input_ids"]`), or that a `collate_fn` makes of something else than tensors.
    """
    project = project_of(run)
    for module in project.training_modules:
        for node in module.nodes(ast.Expr):
            call = node.value
            func = call.func if isinstance(call, ast.Call) else None
            if not isinstance(func, ast.Attribute) or func.attr not in ("to", "cuda"):
                continue
            if not isinstance(func.value, ast.Name) or not _is_tensor(project, module, func.value):
                continue
            name, text = func.value.id, module.source(call)
            yield Finding(
                claim=f"`{text}` moves a tensor and drops the result",
                strength=Strength.STRONG,
                evidence=(module.cite(node, f"{name} itself stays where it is"),),
                shows="device-mismatch",
                is_symptom=True,
                location=module.location(node),
                patch=diff(module, replacing(node, f"{name} = {text}")),
            )


def _is_tensor(project: Project, module: Module, name: ast.Name) -> bool:
    for above in module.enclosing(name):
        if isinstance(above, ast.For) and name.id in _names(above.target):
            return _is_tensor_of_batch(project, module, above, name.id)
    at: ast.AST = module.function_of(name) or module.tree
    values = project.lookup(module, at, name.id)
    statement = module.statement_of(name)
    is_probe = statement is not None and isinstance(module.parents.get(statement), ast.Try)
    return bool(values) and not is_probe and all(_is_made_by_torch(module, v) for v in values)


def _names(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _is_tensor_of_batch(project: Project, module: Module, loop: ast.For, name: str) -> bool:
    parts = _unpacked(loop)
    if name not in parts or not _is_loader(loop.iter) or _is_rebound(loop, name):
        return False
    if _is_mapping(loop, name) or _may_be_foreign(module, name):
        return False
    collates = [c for x in loaders_in(project) if (c := argument(x.call, "collate_fn")) is not None]
    return all(_gives_tensor(project, module, c, parts.index(name), len(parts)) for c in collates)


def _is_loader(node: ast.expr) -> bool:
    """Tell whether one loader is looped over: `zip(…)` and `.items()` give something else."""
    while isinstance(node, ast.Call):
        called = (key_of(node.func) or "").rsplit(".", 1)[-1]
        if called not in WRAPS or not node.args:
            return called.lower().endswith("loader")
        node = node.args[0]
    name = (key_of(node) or "").rsplit(".", 1)[-1].lower()
    return "loader" in name and ("loaders" not in name or isinstance(node, ast.Subscript))


def _is_mapping(loop: ast.For, name: str) -> bool:
    """Tell whether a value is used as no tensor is: `**enc`, `enc["mask"]`, `graph.edge_index`."""
    for node in ast.walk(loop):
        if isinstance(node, ast.keyword) and node.arg is None and key_of(node.value) == name:
            return True
        if isinstance(node, (ast.Subscript, ast.Attribute)) and _is_named(node.value, name):
            called = {c.func for c in ast.walk(loop) if isinstance(c, ast.Call)}
            if _is_foreign_part(node, node in called):
                return True
    return False


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_foreign_part(node: ast.Subscript | ast.Attribute, is_called: bool) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(literal(node.slice), str)
    return node.attr in MAPPING if is_called else node.attr not in OF_TENSORS


def _may_be_foreign(module: Module, name: str) -> bool:
    """Beside these libraries an input may be of their classes; a label is a tensor still."""
    return bool(module.roots & OWN_BATCHES) and name.lower() not in LABELS


def _gives_tensor(project: Project, module: Module, given: ast.expr, place: int, of: int) -> bool:
    """Tell whether a collate function makes a part of the batch by a function of torch."""
    found = project.find_function(module, key_of(given) or "")
    if found is None:
        return False
    home, function = found
    returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    parts = [r.elts for r in returned if isinstance(r, ast.Tuple) and len(r.elts) == of]
    return bool(parts) and all(_is_torch_call(project, home, p[place]) for p in parts)


def _is_torch_call(project: Project, home: Module, node: ast.expr) -> bool:
    values = [node]
    if isinstance(node, ast.Name):
        values = project.lookup(home, node, node.id)
    calls = [home.qualified(v.func) or "" for v in values if isinstance(v, ast.Call)]
    return bool(values) and len(calls) == len(values) and all("torch." in c for c in calls)


def _unpacked(loop: ast.For) -> list[str]:
    """The names of a batch that is taken apart; the whole batch may be of any class."""
    target: ast.expr = loop.target
    if isinstance(target, ast.Tuple) and len(target.elts) == 2:
        first, second = target.elts
        is_counted = "enumerate(" in ast.unparse(loop.iter) or key_of(first) in COUNTERS
        if isinstance(second, ast.Tuple):
            target = second
        elif is_counted:
            return []
    return [key_of(e) or "" for e in target.elts] if isinstance(target, ast.Tuple) else []


COUNTERS = frozenset({"i", "step", "batch_idx", "idx", "_", "it", "n", "iteration", "batch_index"})


def _is_rebound(loop: ast.For, name: str) -> bool:
    assigns = (n for n in ast.walk(loop) if isinstance(n, ast.Assign))
    return any(isinstance(t, ast.Name) and t.id == name for n in assigns for t in n.targets)


def _is_made_by_torch(module: Module, value: ast.expr) -> bool:
    name = (module.qualified(value.func) or "") if isinstance(value, ast.Call) else ""
    return name.startswith("torch.") and name.removeprefix("torch.") in FACTORIES


_LOOP = """
import torch

{before}
for {target} in {loader}:
    {move}
    loss = criterion(model({given}), target)
    loss.backward()
"""


def _loop(
    move: str,
    target: str = "data, target",
    *,
    given: str = "data",
    loader: str = "train_loader",
    before: str = "",
) -> Run:
    text = _LOOP.format(target=target, move=move, given=given, loader=loader, before=before)
    return make_run(sources={"train.py": text})


_COLLATE = """
def collate(rows):
    texts, labels = zip(*rows)
    return {first}, torch.tensor(labels)

train_loader = torch.utils.data.DataLoader(rows, collate_fn=collate)
"""

FIRES = {
    "a batch": _loop("data.to(device)"),
    "a batch, counted": _loop("target.cuda()", "i, (data, target)"),
    "a batch of one of several loaders": _loop("data.cuda()", loader="dataloaders[phase]"),
    "a batch, collated by torch": _loop(
        "data.to(device)", before=_COLLATE.format(first="torch.stack(texts)")
    ),
    "a tensor": make_run(sources={"t.py": "import torch\nx = torch.zeros(3)\nx.to('cuda')\n"}),
}

SILENT = {
    "kept": _loop("data = data.to(device)"),
    "near miss: a module moves in place": _loop("model.to(device)"),
    "near miss: a batch of its own class": _loop("batch.to(device)", "batch"),
    "near miss: a counted batch of its own class": _loop("batch.to(device)", "i, batch"),
    "near miss: counted by another name": _loop(
        "batch.to(device)", "count, batch", loader="enumerate(train_loader)"
    ),
    "near miss: a tokenizer's output": _loop("data.to(device)", given="**data"),
    "near miss: a graph": _loop("data.to(device)", given="data.x, data.edge_index"),
    "near miss: collated by a tokenizer": _loop(
        "data.to(device)", before=_COLLATE.format(first="tokenizer(texts)")
    ),
    "near miss: a model for each loader": _loop(
        "net.to(device)", "net, loader", loader="zip(nets, loaders)"
    ),
}
