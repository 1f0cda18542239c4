"""A training loop that computes gradients and never applies them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Module, key_of
from traindx.source.patches import diff, inserting_after
from traindx.source.project import Project
from traindx.source.values import Kind, kind_made_by

# a step of anything but a schedule, or a framework that steps by itself
STEPPED = re.compile(
    r"(?<!scheduler)(?<!sched)\.(?:step\b|\w*step\w*\()|\.fit\(|Trainer\(|LightningModule|deepspeed"
)
KEPT = frozenset({"state_dict", "load_state_dict", "param_groups", "add_param_group", "state"})

UPDATES = (Do.STEP, Do.SCALER_STEP, Do.MANUAL_UPDATE, Do.GRAD)


@detector(needs=("source",), suggests=("missing-optimizer-step",))
def check(run: Run) -> Iterator[Finding]:
    """A training loop calls backward and never steps its optimizer.

    ## What it detects
    A loop that clears the gradients of an optimizer and calls `backward`, in which neither that
    optimizer nor any other is ever stepped, by hand or through a scaler or framework. The same
    where an optimizer is made, its gradients are never cleared, and no code in sight steps it.

    ## Why it matters
    Gradients are computed and thrown away. The weights stay as they were initialised and the loss
    stays at the level of guessing, without any error.

    ## What to do
    Call `optimizer.step()` after `backward()`.

    ## When it is wrong
    A loop that uses gradients for something else (attacks, saliency, statistics) reads `.grad`;
    such loops, and loops that hand the optimizer to a function out of sight, are left alone.
    """
    project = project_of(run)
    for loop in training_loops(project):
        backward = loop.does(Do.BACKWARD)
        if not backward or loop.does(*UPDATES) or _uses_gradients_otherwise(loop):
            continue
        optimizer = _cleared_optimizer(loop) or _idle_optimizer(project, loop)
        if optimizer is None:
            continue
        last = backward[-1]
        yield Finding(
            claim=f"The training loop calls backward and never {optimizer}.step()",
            strength=Strength.STRONG,
            evidence=(
                cite_source(last.module.path, last.line, "gradients are computed here"),
                cite_source(
                    loop.module.path,
                    getattr(loop.node, "lineno", 1),
                    f"no call of {optimizer}.step() in this loop",
                ),
            ),
            shows="missing-optimizer-step",
            is_symptom=True,
            location=last.location,
            patch=_patch(last, optimizer),
        )


def _cleared_optimizer(loop: TrainingLoop) -> str | None:
    cleared = _own_optimizer(loop)
    if cleared is None or _is_handed_on(loop, cleared.target):
        return None
    return None if _has_another_name(loop.module, cleared.target) else cleared.target


def _has_another_name(module: Module, optimizer: str) -> bool:
    """Tell whether the step itself is given away, as to `torch.compile`, to be called later."""
    for node in module.nodes(ast.Attribute):
        if node.attr == "step" and key_of(node.value) == optimizer:
            above = module.parents.get(node)
            if not (isinstance(above, ast.Call) and above.func is node):
                return True
    return False


def _idle_optimizer(project: Project, loop: TrainingLoop) -> str | None:
    """The one optimizer that the loop's file makes, where nothing in sight could step it."""
    if any(STEPPED.search(m.text) for m in project.training_modules):
        return None
    module = loop.module
    made = [c for c, name in module.calls() if kind_made_by(name) is Kind.OPTIMIZER]
    above = module.parents.get(made[0]) if len(made) == 1 else None
    key = key_of(above.targets[0]) if isinstance(above, ast.Assign) else None
    if key is None or any(_may_step(project, module, c, n, key) for c, n in module.calls()):
        return None
    if any(key_of(n.value) == key and n.attr not in KEPT for n in module.nodes(ast.Attribute)):
        return None
    returned = (n.value for n in module.nodes(ast.Return) if n.value is not None)
    return None if any(key == key_of(n) for r in returned for n in ast.walk(r)) else key


def _may_step(project: Project, module: Module, call: ast.Call, name: str, key: str) -> bool:
    """Tell whether a call out of sight gets the optimizer; a schedule only changes its rate."""
    given = [*call.args, *(k.value for k in call.keywords)]
    if not any(key_of(n) == key for g in given for n in ast.walk(g)):
        return False
    return kind_made_by(name) is not Kind.SCHEDULER and not project.find_function(module, name)


def _own_optimizer(loop: TrainingLoop) -> Act | None:
    """The optimizer whose gradients the loop clears, where we saw how it was made."""
    for act in loop.does(Do.ZERO_GRAD):
        if act.value.kind is Kind.OPTIMIZER and act.value.is_certain:
            return act
    return None


def _uses_gradients_otherwise(loop: TrainingLoop) -> bool:
    nodes = (n for n in ast.walk(loop.node) if isinstance(n, ast.Attribute))
    return any(n.attr == "grad" and isinstance(n.ctx, ast.Load) for n in nodes)


def _is_handed_on(loop: TrainingLoop, optimizer: str) -> bool:
    """Tell whether a call in the loop gets the optimizer as an argument: it may step it."""
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Call):
            given = [*node.args, *(k.value for k in node.keywords)]
            if any(key_of(a) == optimizer for a in given) and not _is_followed(loop, node):
                return True
    return False


def _is_followed(loop: TrainingLoop, call: ast.Call) -> bool:
    """Tell whether the walk went into a call, so that a step in it would have been seen."""
    name = key_of(call.func) or ""
    return any(a.function is not None and a.function.name == name for a in loop.acts)


def _patch(backward: Act, optimizer: str) -> str | None:
    statement = backward.statement
    if statement is None:
        return None
    edit = inserting_after(backward.module, statement, f"{optimizer}.step()")
    return diff(backward.module, edit)


_LOOP = """
import torch
from torch import nn, optim

model = nn.Linear(784, 10)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(10):
    for data, target in train_loader:
        optimizer.zero_grad()
        output = model(data.view(data.size(0), -1))
        loss = criterion(output, target)
        loss.backward()
{more}
"""

_IDLE = _LOOP.replace("        optimizer.zero_grad()\n", "")

FIRES = {
    "no step at all": make_run(sources={"train.py": _LOOP.format(more="")}),
    "neither cleared nor stepped": make_run(sources={"train.py": _IDLE.format(more="")}),
}

SILENT = {
    "near miss: not cleared, and handed to a function out of sight": make_run(
        sources={"train.py": _IDLE.format(more="        finish(optimizer)")}
    ),
    "a right loop": make_run(sources={"train.py": _LOOP.format(more="        optimizer.step()")}),
    "near miss: a scaler steps": make_run(
        sources={"train.py": _LOOP.format(more="        scaler.step(optimizer)")}
    ),
    "near miss: the step is compiled first": make_run(
        sources={
            "train.py": _LOOP.format(more="        update()").replace(
                "\nfor epoch", "update = torch.compile(optimizer.step)\n\nfor epoch"
            )
        }
    ),
    "near miss: handed to a function out of sight": make_run(
        sources={"train.py": _LOOP.format(more="        utils.apply(optimizer, loss)")}
    ),
    "gradients are looked at, not applied": make_run(
        sources={"train.py": _LOOP.format(more="        saliency = data.grad.abs()")}
    ),
}
