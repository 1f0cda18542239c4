"""The loss of a training step is computed where no gradients are recorded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Function, Module, key_of

OFF = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad")


@detector(needs=("source",), suggests=("no-grad-training",))
def check(run: Run) -> Iterator[Finding]:
    """The loss of a training step is computed under `no_grad`.

    ## What it detects
    A training loop that calls `backward` on a loss that is computed inside a `no_grad` or
    `inference_mode` block, or in a function that is decorated with one.

    ## Why it matters
    Nothing is recorded there, so backward has nothing to run through: it raises, or the loop learns
    nothing.

    ## What to do
    Leave the block before the forward pass of training; keep it for validation.

    ## When it is wrong
    A target network or teacher under `no_grad` beside a recorded forward pass is right, and so is
    a validation loss of the same name, in another function or branch; only the last loss before
    backward that it is certain to be called on is looked at.
    """
    for loop in training_loops(project_of(run)):
        for backward in loop.does(Do.BACKWARD):
            loss = _loss_of(loop, backward)
            if loss is None or not _is_off(loss) or _is_on_again(loss):
                continue
            yield Finding(
                claim="The training loss is computed where gradients are switched off",
                strength=Strength.STRONG,
                evidence=(
                    cite_source(loss.module.path, loss.line, "computed under no_grad here"),
                    cite_source(backward.module.path, backward.line, "backward is called here"),
                ),
                shows="no-grad-training",
                is_symptom=True,
                location=loss.location,
            )
            break


def _loss_of(loop: TrainingLoop, backward: Act) -> Act | None:
    """The loss that backward is called on, where the source decides which one that is."""
    binding = _last_binding(backward)
    if binding is None or not _branches(backward.module, binding) <= _branches(
        backward.module, backward.node
    ):
        return None
    before = [a for a in loop.acts[: loop.acts.index(backward)] if a.do is Do.LOSS]
    return next((a for a in reversed(before) if _gives(binding, a, backward)), None)


def _last_binding(backward: Act) -> ast.stmt | None:
    """The statement that last binds the name before backward; a division keeps what it is."""
    module, bound = backward.module, []
    scope = backward.function or module.tree
    for node in ast.walk(scope):
        is_bound = isinstance(getattr(node, "ctx", None), ast.Store)
        if not is_bound or module.function_of(node) is not backward.function:
            continue
        statement = module.statement_of(node)
        if key_of(node) == backward.target and statement is not None:
            bound.append(statement)
    before = [n for n in bound if n.lineno <= backward.line and not _divides(n, backward.target)]
    return max(before, key=lambda n: n.lineno, default=None) if backward.target else None


def _divides(statement: ast.stmt, name: str) -> bool:
    """`loss = loss / steps` and `loss /= steps`."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Div)
    value = statement.value if isinstance(statement, ast.Assign) else None
    is_division = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)
    return is_division and isinstance(value, ast.BinOp) and key_of(value.left) == name


def _branches(module: Module, node: ast.AST) -> set[tuple[ast.AST, str]]:
    """The branches around a node: what else runs with it is in all of them."""
    found: set[tuple[ast.AST, str]] = set()
    child = node
    for above in module.enclosing(node):
        if isinstance(above, Function):
            break
        if isinstance(above, (ast.If, ast.Try, ast.match_case, ast.ExceptHandler)):
            fields = (f for f, v in ast.iter_fields(above) if isinstance(v, list) and child in v)
            found.add((above, next(fields, "")))
        child = above
    return found


def _gives(binding: ast.stmt, act: Act, backward: Act) -> bool:
    """Tell whether the loss is what the statement binds, itself or as a function's result."""
    value = binding.value if isinstance(binding, (ast.Assign, ast.AnnAssign)) else None
    if act.function is backward.function:
        return act.statement is binding and value is not None
    called = key_of(value.func) if isinstance(value, ast.Call) else None
    if act.function is None or (called or "").rsplit(".", 1)[-1] != act.function.name:
        return False
    returned = [n for n in ast.walk(act.function) if isinstance(n, ast.Return)]
    return len(returned) == 1 and _is_result(act, returned[0])


def _is_result(act: Act, returned: ast.Return) -> bool:
    if act.statement is returned:
        return returned.value is act.node
    name, function = key_of(returned.value or returned), act.function or act.module.tree
    bound = [
        n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    targets = getattr(act.statement, "targets", [])
    is_kept = any(isinstance(t, ast.Name) and t.id == name for t in targets)
    return is_kept and sum(n.id == name for n in bound) == 1


def _is_off(act: Act) -> bool:
    """Tell whether the loss's own function switches gradients off around it.

    A function that is called under `no_grad` may be called for training, too.
    """
    withs = [n for n in act.module.enclosing(act.node) if isinstance(n, ast.With)]
    own = [i.context_expr for n in withs if _is_inside(act, n) for i in n.items]
    own += act.function.decorator_list if act.function is not None else []
    called = (n.func if isinstance(n, ast.Call) else n for n in own)
    names = [act.module.qualified(n) or "" for n in called]
    return any(c in OFF or c.endswith((".no_grad", ".inference_mode")) for c in names)


def _is_inside(act: Act, block: ast.With) -> bool:
    return act.module.function_of(block) is act.function


def _is_on_again(loss: Act) -> bool:
    """Inside the block gradients may be switched on again; say nothing."""
    return any("enable_grad" in c or "set_grad_enabled" in c for c in loss.contexts)


_LOOP = """
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    with {context}:
        output = model(data)
        loss = criterion(output, target)
    loss.backward()
    optimizer.step()
"""


def _loop(context: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(context=context)})


_TEACHER = """
import torch
from torch import nn

criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    with torch.no_grad():
        wanted = teacher(data)
    loss = criterion(model(data), wanted)
    loss.backward()
    optimizer.step()
"""

_ESTIMATE = """
import torch
from torch.nn import functional as F

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@torch.no_grad()
def {name}(data, target):
    loss = F.cross_entropy(model(data), target)
    return loss

for data, target in loader:
    print({name}(data, target))
    loss = {value}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

_PHASES = """
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for phase in ("train", "val"):
    for data, target in loaders[phase]:
        if phase == "train":
            loss = criterion(model(data), target)
        else:
            with torch.no_grad():
                loss = criterion(model(data), target)
        if phase == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""

_BOTH = """
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()

def run(loader, optimizer=None):
    for data, target in loader:
        loss = criterion(model(data), target)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    run(train_loader, optimizer)
    with torch.no_grad():
        run(val_loader)
"""


def _estimate(value: str, name: str = "estimate") -> Run:
    return make_run(sources={"train.py": _ESTIMATE.format(value=value, name=name)})


FIRES = {
    "training under no_grad": _loop("torch.no_grad()"),
    "a decorated function": _estimate("compute(data, target)", "compute"),
}

SILENT = {
    "autocast": _loop("torch.autocast('cuda')"),
    "near miss: the teacher only": make_run(sources={"train.py": _TEACHER}),
    "near miss: the same name in validation": _estimate("model(data, target)"),
    "near miss: the other branch": make_run(sources={"train.py": _PHASES}),
    "near miss: one function for both": make_run(sources={"train.py": _BOTH}),
}
