"""A checkpoint holds the state of the schedule and not that of the optimizer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, literal
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

OPTIMIZER = re.compile(r"(?<![a-z])opt(?!ion)", re.IGNORECASE)
# what collects the state of a sharded optimizer, or of model and optimizer at once
GATHERS = re.compile(r"optim\w*_state_dict$|\bget_state_dict$|checkpoint(?:\.\w+)*\.save$")
TO_GO_ON = (Kind.SCHEDULER, Kind.SCALER)


@detector(needs=("source",), suggests=("incomplete-checkpoint",))
def check(run: Run) -> Iterator[Finding]:
    """A checkpoint is made to go on from, and leaves out the optimizer.

    ## What it detects
    `torch.save` of a dictionary with the `state_dict` of a model and of its scheduler or gradient
    scaler, which serve only to go on training, while no file of the project ever saves the state of
    an optimizer that has one: momentum, or the moments of Adam.

    ## Why it matters
    A run that goes on from it takes its first steps without momentum, and Adam with moments of
    zero: the loss jumps, and may not come back.

    ## What to do
    Add `"optimizer": optimizer.state_dict()`, and load it again.

    ## When it is wrong
    If the framework saves the optimizer in a way of its own (`accelerator.save_state`), nothing is
    missing; programs that call such are left alone. So are those that put an optimizer into a file
    in any other way: whole, or by a function that gathers its state (`FSDP.optim_state_dict`).
    """
    project = project_of(run)
    if any(_saves_otherwise(m) for m in project.modules):
        return
    for module in project.training_modules:
        for call, name in module.calls():
            state = call.args[0] if name == "torch.save" and call.args else None
            if not isinstance(state, ast.Dict):
                continue
            kinds = {_kind(project, module, v) for v in state.values}
            if Kind.MODEL not in kinds or not kinds & set(TO_GO_ON) or _may_hold_more(state):
                continue
            if _has_momentum(project) and not _saves_optimizer(project):
                yield _finding(module, call)
                return


def _finding(module: Module, call: ast.Call) -> Finding:
    return Finding(
        claim="The checkpoint holds model and schedule, and no state of the optimizer",
        strength=Strength.STRONG,
        evidence=(module.cite(call, "saved to go on from, without the optimizer"),),
        shows="incomplete-checkpoint",
        is_symptom=True,
        location=module.location(call),
    )


def _saves_otherwise(module: Module) -> bool:
    return "save_state(" in module.text or "save_checkpoint(" in module.text


def _kind(project: Project, module: Module, node: ast.AST | None) -> Kind:
    """Return whose state an expression `x.state_dict()` is."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "state_dict":
        return Kind.UNKNOWN
    at: ast.AST = module.function_of(func) or module.tree
    return value_of(project, module, at, func.value).kind


def _may_hold_more(state: ast.Dict) -> bool:
    """Tell whether the dictionary speaks of an optimizer, or takes in another one."""
    is_open = any(key is None for key in state.keys)
    return is_open or OPTIMIZER.search(ast.unparse(state)) is not None


def _saves_optimizer(project: Project) -> bool:
    """Any state of something that is, or may be, an optimizer counts."""
    for module in project.modules:
        for call, name in module.calls():
            func = call.func
            if GATHERS.search(name) or (name == "torch.save" and OPTIMIZER.search(_first(call))):
                return True
            if not isinstance(func, ast.Attribute) or func.attr != "state_dict":
                continue
            kind = _kind(project, module, call)
            if kind in (Kind.OPTIMIZER, Kind.UNKNOWN) or "opt" in ast.unparse(func.value).lower():
                return True
    return False


def _first(call: ast.Call) -> str:
    return ast.unparse(call.args[0]) if call.args else ""


def _has_momentum(project: Project) -> bool:
    made = [
        (call, name.rsplit(".", 1)[-1])
        for module in project.training_modules
        for call, name in module.calls()
        if name.startswith("torch.optim.") and "lr_scheduler" not in name
    ]
    return bool(made) and all(n != "SGD" or _momentum(c) for c, n in made)


def _momentum(call: ast.Call) -> bool:
    given = next((k.value for k in call.keywords if k.arg == "momentum"), None)
    return given is not None and literal(given) != 0


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1{momentum})
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    scheduler.step()
    torch.save({saved}, "last.pt")
"""
_BOTH = '{"model": model.state_dict(), "scheduler": scheduler.state_dict()}'


def _program(saved: str, momentum: str = ", momentum=0.9") -> Run:
    text = _PROGRAM.replace("{saved}", saved).replace("{momentum}", momentum)
    return make_run(sources={"train.py": text})


FIRES = {"model and schedule": _program(_BOTH)}

SILENT = {
    "all of it": _program(_BOTH[:-1] + ', "optimizer": optimizer.state_dict()}'),
    "near miss: gathered from shards": _program(
        _BOTH[:-1] + ', "optimizer": FSDP.optim_state_dict(model, optimizer)}'
    ),
    "near miss: the optimizer as a whole": _program(_BOTH[:-1] + ', "steps": optimizer}'),
    "near miss: more is taken in": _program(_BOTH[:-1] + ", **rest}"),
    "near miss: weights to use, not to go on from": _program(
        '{"model": model.state_dict(), "epoch": epoch}'
    ),
    "near miss: an optimizer without a state": _program(_BOTH, ""),
}
