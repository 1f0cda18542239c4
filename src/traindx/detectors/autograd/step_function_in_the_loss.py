"""A loss is computed on values that have no gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Do
from traindx.source.loops import training_loops
from traindx.source.losses import LossCall, losses_in
from traindx.source.module import Module, key_of
from traindx.source.phases import is_without_gradients
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

FLAT = {
    "argmax": "argmax", "argmin": "argmin", "argsort": "argsort", "round": "round",
    "floor": "floor", "ceil": "ceil", "sign": "sign", "long": ".long()", "int": ".int()",
    "bool": ".bool()", "numpy": ".numpy()", "heaviside": "heaviside",
}  # fmt: skip
THROUGH = frozenset(
    {"float", "to", "view", "reshape", "squeeze", "unsqueeze", "flatten", "double", "half", "cuda",
     "cpu", "type", "requires_grad_", "contiguous", "clone"}
)  # fmt: skip
BUILDS = frozenset({"torch.tensor", "torch.from_numpy", "torch.as_tensor", "torch.Tensor"})
LIKE = frozenset({"view_as", "expand_as", "reshape_as", "type_as", "expand", "repeat", "new_full"})
MEASURES = frozenset({"shape", "device", "dtype", "size", "ndim"})
CUTS = frozenset({"detach", "item", "data"})
DEEP = 8


@detector(needs=("source",), suggests=("non-differentiable-operation",))
def check(run: Run) -> Iterator[Finding]:
    """The input of a training loss goes through an operation without a gradient.

    ## What it detects
    The first argument of a loss in a training step, followed back through assignments to an
    argmax, a rounding, a comparison, a cast to integers or a round trip through NumPy.

    ## Why it matters
    Such an operation is flat: its gradient is zero or does not exist. Backward raises, or the loss
    does not depend on the weights and nothing is learnt.

    ## What to do
    Compute the loss on the scores (logits, probabilities); use argmax and thresholds for metrics.

    ## When it is wrong
    A straight-through estimator adds the rounded value to a differentiable one and is left alone,
    as are losses that no backward is called on. A loss that is given its target first, as
    `mse_loss(target, output)`, has its gradient through the other argument.
    """
    project = project_of(run)
    trained = _trained(project)
    recorded = _recorded(project)
    for loss in losses_in(project):
        if loss.input is None or loss.act.node not in trained:
            continue
        found = _flat(project, loss, loss.input, DEEP)
        if found is None or _has_other_gradient(project, loss, recorded):
            continue
        node, how = found
        if _is_of_batch(project, loss, node, DEEP):
            continue
        yield Finding(
            claim=f"The loss is computed on the result of {how}, which has no gradient",
            strength=Strength.STRONG,
            evidence=(
                loss.module.cite(node, f"{how} here"),
                loss.module.cite(loss.call, "its result goes into the loss here"),
            ),
            shows="non-differentiable-operation",
            is_symptom=True,
            location=loss.module.location(node),
        )


def _trained(project: Project) -> set[ast.AST]:
    """The loss calls whose result, by its name, backward is called on in the same function."""
    found: set[ast.AST] = set()
    for loop in training_loops(project):
        targets = {(a.function, a.target) for a in loop.does(Do.BACKWARD)}
        for act in loop.does(Do.LOSS):
            statement = act.statement
            names = getattr(statement, "targets", [])
            is_kept = isinstance(statement, ast.Assign) and statement.value is act.node
            if is_kept and any((act.function, key_of(t)) in targets for t in names):
                found.add(act.node)
    return found


def _flat(
    project: Project, loss: LossCall, node: ast.expr, depth: int
) -> tuple[ast.expr, str] | None:
    if depth == 0:
        return None
    if isinstance(node, ast.Compare) and not any(isinstance(o, ast.In) for o in node.ops):
        return node, "a comparison"
    if isinstance(node, ast.Call):
        return _flat_call(project, loss, node, depth)
    key = key_of(node)
    if key is None or isinstance(node, ast.Subscript) or "." in key:
        return None
    made = [v for v in project.bindings(loss.scope).get(key, []) if v.lineno <= loss.line]
    before = [v for v in made if v is not node and v.lineno < node.lineno] or made
    if not before:
        return None
    last = max(before, key=lambda v: v.lineno)
    if not _branches(loss.module, last) <= _branches(loss.module, loss.call):
        return None
    return _flat(project, loss, last, depth - 1)


def _branches(module: Module, node: ast.AST) -> set[tuple[ast.AST, bool]]:
    """The branches that a node is in: a value of another branch may not be the one that counts."""
    around = [node, *module.enclosing(node)]
    pairs = pairwise(around)
    return {(up, n in up.orelse) for n, up in pairs if isinstance(up, (ast.If, ast.Try))}


def _recorded(project: Project) -> set[ast.AST]:
    """The forward passes of training that have a gradient."""
    acts = (a for loop in training_loops(project) for a in loop.does(Do.FORWARD))
    return {a.node for a in acts if not is_without_gradients(a)}


def _has_other_gradient(project: Project, loss: LossCall, recorded: set[ast.AST]) -> bool:
    """Tell whether the model's output is another argument of the loss, as of a swapped one."""
    given = [*loss.call.args, *(k.value for k in loss.call.keywords)]
    others = [a for a in given if a is not loss.input]
    return any(_is_recorded(project, loss, a, recorded, DEEP // 2) for a in others)


def _is_recorded(
    project: Project, loss: LossCall, node: ast.expr, recorded: set[ast.AST], depth: int
) -> bool:
    is_cut = any(isinstance(n, ast.Attribute) and n.attr in CUTS for n in ast.walk(node))
    if depth == 0 or is_cut or _flat(project, loss, node, depth) is not None:
        return False
    parts = list(_carrying(node))
    if any(n in recorded for n in parts):
        return True
    names = {n.id for n in parts if isinstance(n, ast.Name)}
    bound = project.bindings(loss.scope)
    made = [v for name in names for v in bound.get(name, []) if v.lineno < node.lineno]
    return any(_is_recorded(project, loss, v, recorded, depth - 1) for v in made)


def _carrying(node: ast.AST) -> Iterator[ast.AST]:
    """The parts whose gradient reaches the whole: in `y.view_as(output)` that is `y` alone."""
    yield node
    if isinstance(node, ast.Attribute) and node.attr in MEASURES:
        return
    func = node.func if isinstance(node, ast.Call) else None
    is_shaped = isinstance(func, ast.Attribute) and (func.attr in THROUGH or func.attr in LIKE)
    for child in [func] if is_shaped and func is not None else ast.iter_child_nodes(node):
        yield from _carrying(child)


def _is_of_batch(project: Project, loss: LossCall, node: ast.expr, depth: int) -> bool:
    """Tell whether a value is made of the batch alone: then it is a target, not an output."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - set(loss.module.aliases)
    loops = [n for n in loss.module.enclosing(loss.call) if isinstance(n, ast.For)]
    batch = {n.id for f in loops for n in ast.walk(f.target) if isinstance(n, ast.Name)}
    bound = project.bindings(loss.scope)
    if _calls_own(loss, node) or any(_is_model(project, loss, name) for name in names):
        return False
    for name in names:
        made = [v for v in bound.get(name, []) if v.lineno < node.lineno]
        is_known = bool(made) or name in batch
        if depth == 0 or not is_known:
            return False
        if not all(_is_of_batch(project, loss, v, depth - 1) for v in made):
            return False
    return True


def _calls_own(loss: LossCall, node: ast.expr) -> bool:
    """Tell whether something that is not imported is called: that may be the model."""
    called = [c.func for c in ast.walk(node) if isinstance(c, ast.Call)]
    return any(isinstance(f, ast.Name) and f.id not in loss.module.aliases for f in called)


def _is_model(project: Project, loss: LossCall, name: str) -> bool:
    value = value_of(project, loss.module, loss.scope, ast.Name(name))
    return value.kind is Kind.MODEL


def _flat_call(
    project: Project, loss: LossCall, call: ast.Call, depth: int
) -> tuple[ast.expr, str] | None:
    name = loss.module.qualified(call.func) or ""
    func = call.func
    method = func.attr if isinstance(func, ast.Attribute) else ""
    if name.startswith("torch.") and name.removeprefix("torch.") in FLAT:
        return call, FLAT[name.removeprefix("torch.")]
    if method in FLAT and isinstance(func, ast.Attribute) and not _is_module(loss.module, func):
        return call, FLAT[method]
    if method in THROUGH and isinstance(func, ast.Attribute):
        return _flat(project, loss, func.value, depth - 1)
    if name in BUILDS and call.args:
        return _flat(project, loss, call.args[0], depth - 1)
    return None


def _is_module(module: Module, func: ast.Attribute) -> bool:
    """`np.round(x)` is a function of a module, not a method of a tensor."""
    return isinstance(func.value, ast.Name) and func.value.id in module.aliases


_LOOP = """
import torch
from torch import nn

criterion = nn.MSELoss()
net = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    output = model(data)
    {compute}
    loss = criterion({given}, {wanted})
    loss.backward()
    optimizer.step()
"""


def _loop(given: str, compute: str = "pass", wanted: str = "target") -> Run:
    text = _LOOP.format(given=given, compute=compute, wanted=wanted)
    return make_run(sources={"train.py": text})


FIRES = {
    "argmax": _loop("pred.float()", "pred = torch.argmax(output, dim=1)"),
    "a threshold": _loop("pred", "pred = (output > 0.5).float()"),
    "round, of a call": _loop("given", "given = torch.round(net(data))"),
    "round": _loop("torch.round(output)"),
    "round, the target in its shape": _loop("output.round()", wanted="target.view_as(output)"),
}

SILENT = {
    "scores": _loop("output"),
    "near miss: straight through": _loop(
        "pred", "pred = output + (output.round() - output).detach()"
    ),
    "near miss: the target first": _loop("(data > 0.5).float()", wanted="output"),
    "near miss: a target of the batch first": _loop(
        "bits", "data = data.flatten(1); bits = (data > 0.5).float()", "decode(output)"
    ),
    "near miss: only in another branch": _loop(
        "output", "if hard:\n        output = output.round()"
    ),
    "near miss: argmax for a metric": _loop("output", "correct = output.argmax(1) == target"),
}
