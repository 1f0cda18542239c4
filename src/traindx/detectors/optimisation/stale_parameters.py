"""The optimizer holds other parameters than those that are trained."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Module, key_of, literal
from traindx.source.phases import is_without_gradients
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

DEEP = 3  # assignments between a loop and the model that it runs


@detector(needs=("source",), suggests=("parameters-not-in-optimizer",))
def check(run: Run) -> Iterator[Finding]:
    """The model is replaced or extended after its optimizer was made, or is not in it at all.

    ## What it detects
    After `optimizer = SGD(model.parameters(), …)`, and before its last step: a new model under the
    same name, or a new layer assigned to the model, that no other optimizer takes up; an optimizer
    over a model that the loop never runs; and, as a remark, an optimizer over one part of a model
    of which nothing is frozen.

    ## Why it matters
    The optimizer keeps the tensors that it was given. New ones are never updated: the loss stays
    where it is, or only part of the model learns, without any error.

    ## What to do
    Make the optimizer after the model has its final form, or use `optimizer.add_param_group`.

    ## When it is wrong
    Moving a model to a device keeps its parameters and is fine. Training only a head while the
    rest stays as it is may be meant; that is only remarked. A model that is changed once training
    is over is left alone, and so is one that runs inside an object made from it.
    """
    project = project_of(run)
    seen: set[ast.AST] = set()
    for loop in training_loops(project):
        for step in loop.does(Do.STEP):
            made = step.value.call
            if made is None or not _is_torch_optimizer(step) or made in seen:
                continue
            seen.add(made)
            home = next((m for m in (step.module, *project.modules) if made in m.parents), None)
            if home is not None:
                yield from _changed_later(project, home, made, step)
                yield from _of_another_model(project, loop, home, made)
                yield from _of_a_part(project, loop, home, made)


def _is_torch_optimizer(step: Act) -> bool:
    return step.value.kind is Kind.OPTIMIZER and step.value.made_by.startswith("torch.optim.")


def _owner(made: ast.Call) -> ast.expr | None:
    """The model in `SGD(model.parameters(), …)`."""
    given = made.args[0] if made.args else None
    func = given.func if isinstance(given, ast.Call) else None
    is_all = isinstance(func, ast.Attribute) and func.attr == "parameters"
    return func.value if is_all and isinstance(func, ast.Attribute) else None


def _changed_later(
    project: Project, module: Module, made: ast.Call, step: Act
) -> Iterator[Finding]:
    owner, statement = _owner(made), module.statement_of(made)
    if not isinstance(owner, ast.Name) or statement is None or "add_param_group" in module.text:
        return
    for later in _siblings_after(module, statement):
        if not isinstance(later, ast.Assign) or _is_remade(module, statement, later):
            continue
        target, value = later.targets[0], later.value
        what = _change(project, module, owner.id, target, value)
        if what and _is_stepped_after(module, statement, later, step):
            if _is_covered(module, later, owner.id):
                return
            yield _finding(
                f"{what} after the optimizer was made; its parameters are not in it",
                (module, later, "the model changes here"),
                (module, made, "the optimizer was made here, from the old parameters"),
            )
            return


def _siblings_after(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that follow in the same block, up to where the optimizer is made anew."""
    above = module.parents.get(statement)
    for body in (getattr(above, "body", []), getattr(above, "orelse", [])):
        if isinstance(body, list) and statement in body:
            return list(body[body.index(statement) + 1 :])
    return []


def _is_remade(module: Module, statement: ast.stmt, later: ast.stmt) -> bool:
    """Tell whether the same optimizer name is bound again after the change."""
    names = {ast.unparse(t) for t in getattr(statement, "targets", [])}
    scope: ast.AST = module.function_of(later) or module.tree
    others = (n for n in ast.walk(scope) if isinstance(n, ast.Assign) and n is not statement)
    return any(
        ast.unparse(t) in names and n.lineno > later.lineno for n in others for t in n.targets
    )


def _after(module: Module, later: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of the same scope that come behind a statement."""
    scope: ast.AST = module.function_of(later) or module.tree
    end = later.end_lineno or later.lineno
    return (n for n in ast.walk(scope) if int(getattr(n, "lineno", 0)) > end)


def _is_stepped_after(module: Module, statement: ast.stmt, later: ast.stmt, step: Act) -> bool:
    """Tell whether the optimizer is stepped, or handed on, once the model has changed.

    Training may be over by then: a fresh model takes the best weights to be tested.
    """
    names = {key_of(t) for t in getattr(statement, "targets", [])}
    is_elsewhere = step.function is not module.function_of(later)
    if is_elsewhere and any((n or "").startswith("self.") for n in names):
        return True  # made in one method, stepped in another
    trains = "" if step.function is None or not is_elsewhere else step.function.name
    for call in (n for n in _after(module, later) if isinstance(n, ast.Call)):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "step" and key_of(func.value) in names:
            return True
        given = [*call.args, *(k.value for k in call.keywords)]
        if any(key_of(g) in names for g in given) and not _is_schedule(module, call):
            return True
        own = module.functions.get(key_of(func) or "")
        if trains and own is not None and trains in {own.name, *_names(own)}:
            return True
    return False


def _is_schedule(module: Module, call: ast.Call) -> bool:
    return "lr_scheduler" in (module.qualified(call.func) or "")


def _is_covered(module: Module, later: ast.stmt, model: str) -> bool:
    """Tell whether another optimizer takes the model up, or this one is given new parameters."""
    for node in _after(module, later):
        if isinstance(node, ast.Subscript) and literal(node.slice) == "params":
            return True
        name = (module.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
        is_optimizer = name.startswith("torch.optim.") and "lr_scheduler" not in name
        if is_optimizer and model in _names(node):
            return True
    return False


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _change(project: Project, module: Module, model: str, target: ast.expr, value: ast.expr) -> str:
    if not isinstance(value, ast.Call) or any(
        isinstance(n, ast.Name) and n.id == model for n in ast.walk(value)
    ):
        return ""
    at: ast.AST = module.function_of(target) or module.tree
    made = value_of(project, module, at, value)
    is_new = made.kind is Kind.MODEL and made.is_certain and made.call is value
    if not is_new:
        return ""
    if isinstance(target, ast.Name) and target.id == model:
        return f"`{model}` is replaced"
    owner = target.value if isinstance(target, ast.Attribute) else None
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    has_parameters = made.made_by.rsplit(".", 1)[-1] not in PLAIN
    if isinstance(owner, ast.Name) and owner.id == model and has_parameters:
        return f"`{ast.unparse(target)}` is replaced"
    return ""


PLAIN = frozenset({"Identity", "ReLU", "Dropout", "Flatten", "Sigmoid", "Softmax", "Tanh", "GELU"})


def _of_another_model(
    project: Project, loop: TrainingLoop, module: Module, made: ast.Call
) -> Iterator[Finding]:
    owner = _owner(made)
    if _is_made_afterwards(module, loop, made):
        return
    forwards = [a for a in loop.does(Do.FORWARD) if not is_without_gradients(a)]
    optimizers = {a.value.call for a in loop.does(Do.STEP)}
    if not isinstance(owner, ast.Name) or not forwards or len(optimizers) > 1:
        return
    held = value_of(project, module, module.function_of(made) or module.tree, owner)
    run = {a.value.call for a in forwards}
    if held.call is None or not held.is_certain or held.call in run or len(run) != 1:
        return
    other = forwards[0]
    if other.value.call is None or not other.value.is_certain or other.value.kind is not Kind.MODEL:
        return
    used = _used(project, loop) | _names(other.value.call)
    if owner.id in used or other.target in _names(held.call):
        return
    yield _finding(
        f"The loop trains `{other.target}` and the optimizer holds `{owner.id}`",
        (module, made, f"the optimizer holds the parameters of {owner.id}"),
        (other.module, other.node, f"the loop runs {other.target}"),
    )


def _used(project: Project, loop: TrainingLoop) -> set[str]:
    """The names in a loop, and those in what made its objects: a loss may hold the model."""
    at: ast.AST = loop.function or loop.module.tree
    found, new = set[str](), _names(loop.node)
    for _ in range(DEEP):
        found |= new
        values = (v for n in new for v in project.lookup(loop.module, at, n))
        made = {x for v in values if not _is_training_tool(loop.module, v) for x in _names(v)}
        bodies = (f for n in new if (f := loop.module.functions.get(n)) is not None)
        new = (made | {x for f in bodies for x in _names(f)}) - found
    return found | new


def _is_training_tool(module: Module, node: ast.expr) -> bool:
    """Tell whether a value is an optimizer or schedule: made from a model, it does not run it."""
    name = (module.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
    return name.startswith("torch.optim.")


def _is_made_afterwards(module: Module, loop: TrainingLoop, made: ast.Call) -> bool:
    """Tell whether a name was bound to this optimizer only after the loop was done with it."""
    is_here = module is loop.module and module.function_of(made) is module.function_of(loop.node)
    return is_here and made.lineno > int(getattr(loop.node, "end_lineno", 0) or 0)


def _of_a_part(
    project: Project, loop: TrainingLoop, module: Module, made: ast.Call
) -> Iterator[Finding]:
    owner = _owner(made)
    if not isinstance(owner, ast.Attribute) or not isinstance(owner.value, ast.Name):
        return
    model = owner.value.id
    if model == "self" or "requires_grad" in module.text or "no_grad" in module.text:
        return
    forwards = [a for a in loop.does(Do.FORWARD) if a.target == model and a.value.is_certain]
    makers = [
        c for c, n in module.calls() if n.startswith("torch.optim.") and model in ast.unparse(c)
    ]
    if not forwards or len([c for c in makers if "lr_scheduler" not in ast.unparse(c)]) != 1:
        return
    yield Finding(
        claim=f"The optimizer holds only `{ast.unparse(owner)}`, and nothing else is frozen",
        strength=Strength.MODERATE,
        evidence=(module.cite(made, f"only {ast.unparse(owner)} is handed over"),),
        suggests={"parameters-not-in-optimizer": Strength.MODERATE},
        location=module.location(made),
    )


def _finding(
    claim: str, first: tuple[Module, ast.AST, str], second: tuple[Module, ast.AST, str]
) -> Finding:
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(first[0].cite(*first[1:]), second[0].cite(*second[1:])),
        shows="parameters-not-in-optimizer",
        is_symptom=True,
        location=first[0].location(first[1]),
    )


_PROGRAM = """
import torch
from torch import nn
from torchvision import models

model = {model}
{before}
optimizer = torch.optim.SGD({held}, lr=0.1)
{after}
for data, target in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
"""


def _program(
    after: str = "", held: str = "model.parameters()", before: str = "", model: str = ""
) -> Run:
    model = model or "nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))"
    text = _PROGRAM.format(after=after, held=held, before=before, model=model)
    return make_run(sources={"train.py": text})


FIRES = {
    "a new head afterwards": _program("model.fc = nn.Linear(512, 2)"),
    "a new model afterwards": _program("model = nn.Linear(4, 2)"),
    "another model's parameters": _program(before="old = nn.Linear(4, 2)", held="old.parameters()"),
    "one part, a remark": _program(held="model.head.parameters()"),
}

_TEACHER_FIRST = """
import torch
from torch import nn
teacher = nn.Linear(4, 2)
optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(teacher(x), y).backward()
    optimizer.step()
student = nn.Linear(4, 2)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
"""

_LATER = _PROGRAM.format(model="Net()", before="", held="model.parameters()", after="")
_SECOND = "model.head = nn.Linear(4, 2)\ntuner = torch.optim.Adam(model.parameters())\n"
_INSIDE = """
import torch
from torch import nn
net, teacher = nn.Linear(4, 2), nn.Linear(4, 2)
criterion = Distance(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in loader:
    {reference}
    loss = criterion(x, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

SILENT = {
    "near miss: a fresh model for the test": make_run(
        sources={"train.py": _LATER + "model = nn.Linear(4, 2)\nmodel.load_state_dict(best)\n"}
    ),
    "near miss: a new head for the next optimizer": make_run(
        sources={"train.py": _LATER + _SECOND + "fit(model, tuner, optimizer)\n"}
    ),
    "near miss: the loss runs the model": make_run(
        sources={"train.py": _INSIDE.format(reference="wanted = teacher(x).detach()")}
    ),
    "near miss: a teacher without gradients": make_run(
        sources={
            "train.py": _INSIDE.format(
                reference="with torch.no_grad():\n        wanted = teacher(x)"
            ).replace("Distance(net)", "make_loss()")
        }
    ),
    "near miss: the name is used again for a second model": make_run(
        sources={"train.py": _TEACHER_FIRST}
    ),
    "a new head before": _program(before="model.fc = nn.Linear(512, 2)"),
    "near miss: moved afterwards": _program("model = model.to(device)"),
    "near miss: wrapped afterwards": _program("model = nn.DataParallel(model)"),
    "near miss: a group is added": _program(
        "model.fc = nn.Linear(512, 2)\noptimizer.add_param_group({'params': model.fc.parameters()})"
    ),
    "near miss: the rest is frozen": _program(
        before="model.requires_grad_(False)", held="model.head.parameters()"
    ),
}
