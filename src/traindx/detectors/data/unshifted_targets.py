"""Inputs and targets are the same slice of the data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, key_of, literal
from traindx.source.project import Project

TARGETS = frozenset({"y", "yb", "y_batch", "target", "targets", "label", "labels", "tgt", "trg"})
COPIES = ("copy", "clone", "autoencod", "reconstruct", "denois")
# a file that speaks of these trains a model to give back what it was given
REBUILDS = re.compile(r"auto_?encod|reconstruct|denois|inpaint|diffusion|\bvae\b|\bmlm\b", re.I)
SCORES = TARGETS | {
    "logits",
    "output",
    "outputs",
    "pred",
    "preds",
    "scores",
    "out",
    "ids",
    "tokens",
}
KEEPS = frozenset(
    {"to", "cuda", "cpu", "long", "int", "float", "clone", "contiguous", "pin_memory", "type",
     "view", "reshape", "flatten", "squeeze", "unsqueeze", "t", "transpose", "copy", "astype",
     "tensor", "as_tensor", "from_numpy", "LongTensor", "FloatTensor", "Variable", "stack"}
)  # fmt: skip
DISTURBS = re.compile(r"mask|corrupt|nois|augment|perturb|distort|degrad|shift|roll", re.I)
Block = ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


@detector(needs=("source",), suggests=("misaligned-labels",))
def check(run: Run) -> Iterator[Finding]:
    """A target is cut out of the data by the very expression that cuts out the input.

    ## What it detects
    Two statements of one block that bind an input and a target, by their names, to the same slice
    of the same data: `x = data[i : i + n]` and `y = data[i : i + n]`.

    ## Why it matters
    A model of sequences is to predict what comes next. Here the answer is the input itself: the
    loss falls to nothing, or, if it is so in validation only, rises without end.

    ## What to do
    Move the target by one: `y = data[i + 1 : i + 1 + n]`.

    ## When it is wrong
    An autoencoder's target is its input; code that says so, or that gives the input itself to the
    loss, is left alone. So is code that moves or masks one of the two later: `targets[:, 1:]` in
    the loss, a masked input, or `labels` for a model that moves them itself, as those of
    transformers do.
    """
    project = project_of(run)
    if _is_moved_elsewhere(project):
        return
    for module in project.training_modules:
        for node in module.nodes(ast.Assign):
            name = _name(node)
            if name.rsplit(".", 1)[-1].lower() not in TARGETS or not _cuts(node.value):
                continue
            twin = _twin(module, node)
            if twin is None or _is_copy(module, node):
                continue
            if not _is_changed_later(module, twin, node) and not _is_labels(module, node):
                yield _finding(module, twin, node)


def _name(node: ast.Assign) -> str:
    return (key_of(node.targets[0]) or "") if len(node.targets) == 1 else ""


def _cuts(value: ast.expr) -> bool:
    """Tell whether a value is cut out of a sequence between two bounds that move."""
    slices = (n for n in ast.walk(value) if isinstance(n, ast.Slice) and n.lower and n.upper)
    return any(isinstance(n, ast.Name) for s in slices for n in ast.walk(s))


def _twin(module: Module, node: ast.Assign) -> ast.Assign | None:
    """The statement just before or after that binds another name to the same."""
    above = module.parents.get(node)
    for body in (getattr(above, "body", []), getattr(above, "orelse", [])):
        if not isinstance(body, list) or node not in body:
            continue
        place = body.index(node)
        for other in body[max(place - 2, 0) : place + 3]:
            is_other = isinstance(other, ast.Assign) and _name(other) not in ("", _name(node))
            if is_other and ast.dump(other.value) == ast.dump(node.value):
                return other if isinstance(other, ast.Assign) else None
    return None


def _is_copy(module: Module, node: ast.stmt) -> bool:
    function, cls = module.function_of(node), module.class_of(node)
    names = [x.name.lower() for x in (function, cls) if x is not None] + [module.path.lower()]
    return any(word in name for name in names for word in COPIES) or bool(
        REBUILDS.search(module.text)
    )


def _is_moved_elsewhere(project: Project) -> bool:
    """Tell whether the program moves targets against scores, or leaves that to a library."""
    modules = project.training_modules
    if any("transformers" in m.roots for m in modules):
        return True
    return any(_moves_by_one(n) for m in modules for n in m.nodes(ast.Subscript))


def _moves_by_one(node: ast.Subscript) -> bool:
    """`logits[:, :-1]` and `targets[1:]`; `x.shape[:-1]` and `argv[1:]` are none of it."""
    name = (key_of(node.value) or "").rsplit(".", 1)[-1].lower()
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    is_data = len(parts) > 1 or bool(set(name.split("_")) & SCORES)
    return is_data and any(isinstance(p, ast.Slice) and _leaves_one_out(p) for p in parts)


def _leaves_one_out(part: ast.Slice) -> bool:
    if part.lower is not None and part.upper is not None:
        return False
    return literal(part.lower) == 1 or literal(part.upper) == -1


def _is_changed_later(module: Module, given: ast.Assign, wanted: ast.Assign) -> bool:
    """Tell whether the input or the target is masked, moved or made anew before it is used."""
    names = {_name(given), _name(wanted)}
    last = max(given, wanted, key=lambda n: n.lineno)
    later = [n for s in _following(module, last) for n in ast.walk(s)]
    return any(_changes(n, names) or _disturbs(n, names, _name(given)) for n in later)


def _following(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    """What runs after a statement in its loop or function; another branch does not."""
    found: list[ast.stmt] = []
    child: ast.AST = statement
    for above in module.enclosing(statement):
        for _, body in ast.iter_fields(above):
            if isinstance(body, list) and child in body:
                found += body[body.index(child) + 1 :]
        if isinstance(above, Block):
            break
        child = above
    return found


def _changes(node: ast.AST, names: set[str]) -> bool:
    """A name that is bound to something else, or written into."""
    if isinstance(node, ast.Assign):
        pairs = [p for t in node.targets for p in _pairs(t, node.value)]
        return any(key_of(t) in names and not _is_kept(t, v) for t, v in pairs)
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return key_of(node.target) in names
    return False


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if not isinstance(target, ast.Tuple):
        return [(target, value)]
    values = value.elts if isinstance(value, ast.Tuple) else []
    if len(values) != len(target.elts):
        values = [value] * len(target.elts)
    return list(zip(target.elts, values, strict=True))


def _is_kept(target: ast.expr, value: ast.expr) -> bool:
    """`y = y.to(device)` is still the same data; `y[hidden] = -100` is not."""
    while isinstance(value, ast.Call):
        func = value.func
        called = func.attr if isinstance(func, ast.Attribute) else key_of(func) or ""
        if called not in KEEPS:
            return False
        is_function = called[:1].isupper() or called in ("tensor", "as_tensor", "from_numpy")
        if not is_function and isinstance(func, ast.Attribute) and called != "stack":
            value = func.value
        elif value.args:
            value = value.args[0]
        else:
            return False
    same = key_of(value) == key_of(target)
    return same and not isinstance(target, ast.Subscript) and not isinstance(value, ast.Subscript)


def _disturbs(node: ast.AST, names: set[str], given: str) -> bool:
    """Cut again, changed in place, handed to what masks it, or mixed with something."""
    if isinstance(node, ast.Subscript):
        return key_of(node) in names
    if isinstance(node, ast.BinOp):
        return given in (key_of(node.left), key_of(node.right))
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    called = func.attr if isinstance(func, ast.Attribute) else key_of(func) or ""
    if isinstance(func, ast.Attribute) and key_of(func.value) in names:
        return called.endswith("_") or bool(DISTURBS.search(called))
    return bool(DISTURBS.search(called)) and any(key_of(a) in names for a in node.args)


def _is_labels(module: Module, wanted: ast.Assign) -> bool:
    """Tell whether the target goes out as `labels`: a model that takes these moves them itself."""
    scope, name = module.function_of(wanted) or module.tree, _name(wanted)
    named = [(k.arg, k.value) for k in ast.walk(scope) if isinstance(k, ast.keyword)]
    for node in ast.walk(scope):
        if isinstance(node, ast.Dict):
            named += [(str(literal(k)), v) for k, v in zip(node.keys, node.values, strict=True)]
    return any(k == "labels" and _holds(v, name) for k, v in named)


def _holds(node: ast.expr, name: str) -> bool:
    return any(key_of(n) == name for n in ast.walk(node))


def _finding(module: Module, given: ast.Assign, wanted: ast.Assign) -> Finding:
    return Finding(
        claim=f"`{_name(wanted)}` is the same slice as `{_name(given)}`: it is not moved by one",
        strength=Strength.STRONG,
        evidence=(
            module.cite(given, f"`{ast.unparse(given)}`"),
            module.cite(wanted, f"`{ast.unparse(wanted)}`"),
        ),
        shows="misaligned-labels",
        is_symptom=True,
        location=module.location(wanted),
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(0, 1000, 24):
    x = data[:, i : i + 24]
    {name} = {value}
    {then}
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


_LOSS = "nn.functional.cross_entropy(model(x).flatten(0, 1), {name}.flatten())"


def _program(value: str, name: str = "y", then: str = "pass", loss: str = _LOSS) -> Run:
    given = {"value": value, "name": name, "then": then, "loss": loss.format(name=name)}
    return make_run(sources={"train.py": _PROGRAM.format(**given)})


_BRANCHES = """
import torch

def get_batch(split, i):
    if split == "val":
        x = val[i : i + 24]
        y = val[i : i + 24]
    else:
        x = train[i : i + 24]
        y = train[i + 1 : i + 25]
    return x, y
"""
_SAME = "data[:, i : i + 24]"

FIRES = {
    "the same slice": _program(_SAME),
    "the same slice, moved to the device": _program(_SAME, then="x, y = x.cuda(), y.cuda()"),
    "in one of two branches": make_run(sources={"train.py": _BRANCHES}),
}

SILENT = {
    "moved by one": _program("data[:, i + 1 : i + 25]"),
    "near miss: of other data": _program("answers[:, i : i + 24]"),
    "near miss: a second view": _program(_SAME, "x2"),
    "near miss: moved in the loss": _program(
        _SAME,
        loss="nn.functional.cross_entropy(model(x)[:, :-1].flatten(0, 1), y[:, 1:].flatten())",
    ),
    "near miss: a masked input": _program(
        _SAME, then="hide = torch.rand(x.shape) < 0.15; x = x.masked_fill(hide, 0); y[~hide] = -100"
    ),
    "near miss: masked by a function": _program(_SAME, then="x = mask_tokens(x)"),
    "near miss: noise is added": _program(_SAME, loss="nn.functional.mse_loss(model(x + e), y)"),
    "near miss: a model that moves them": _program(_SAME, loss="model(x, labels=y).loss"),
    "near miss: an autoencoder": _program(_SAME, then="reconstruction = model(x)"),
}
