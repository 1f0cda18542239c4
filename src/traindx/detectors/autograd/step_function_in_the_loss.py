"""A loss is computed on values that have no gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Do
from traindx.source.loops import training_loops
from traindx.source.losses import LossCall, losses_in
from traindx.source.module import Module, key_of
from traindx.source.project import Project

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
    as are losses that no backward is called on.
    """
    project = project_of(run)
    trained = _trained(project)
    for loss in losses_in(project):
        if loss.input is None or loss.act.node not in trained:
            continue
        found = _flat(project, loss, loss.input, DEEP)
        if found is None:
            continue
        node, how = found
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
    return _flat(project, loss, max(before, key=lambda v: v.lineno), depth - 1)


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
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    output = model(data)
    {compute}
    loss = criterion({given}, target)
    loss.backward()
    optimizer.step()
"""


def _loop(given: str, compute: str = "pass") -> Run:
    return make_run(sources={"train.py": _LOOP.format(given=given, compute=compute)})


FIRES = {
    "argmax": _loop("pred.float()", "pred = torch.argmax(output, dim=1)"),
    "a threshold": _loop("pred", "pred = (output > 0.5).float()"),
    "round": _loop("torch.round(output)"),
}

SILENT = {
    "scores": _loop("output"),
    "near miss: straight through": _loop(
        "pred", "pred = output + (output.round() - output).detach()"
    ),
    "near miss: argmax for a metric": _loop("output", "correct = output.argmax(1) == target"),
}
