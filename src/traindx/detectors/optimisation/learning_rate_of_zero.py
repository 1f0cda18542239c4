"""An optimizer is made with a learning rate of zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import resolve
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.project import Project

NO_OPTIMIZERS = ("lr_scheduler", "swa_utils")
USES_ONLY = frozenset({"step", "unscale_", "print", "type", "id", "repr", "str", "isinstance"})
RAISES_IT = ("param_groups", "lr_scheduler", "Scheduler", "scheduler", "set_lr", "adjust_lr")


@detector(needs=("source",), suggests=("lr-zero",))
def check(run: Run) -> Iterator[Finding]:
    """An optimizer of torch is made with `lr=0`.

    ## What it detects
    The literal 0 as the learning rate of an optimizer, in a file that knows no schedule and writes
    no learning rate later.

    ## Why it matters
    Every step multiplies the update by zero: training runs at full cost and changes nothing.

    ## What to do
    Give a learning rate: 1e-3 for Adam and 0.1 for SGD are where to start.

    ## When it is wrong
    A schedule may raise the rate from zero; files that mention one are left alone. So is an
    optimizer whose parameters may come in groups with rates of their own, or that is handed to a
    function that writes rates or is out of sight.
    """
    project = project_of(run)
    for module in project.training_modules:
        for call, name in module.calls():
            if not name.startswith("torch.optim.") or any(part in name for part in NO_OPTIMIZERS):
                continue
            rate = literal(argument(call, "lr", 1))
            is_zero = isinstance(rate, (int, float)) and not isinstance(rate, bool) and rate == 0
            if not is_zero or any(word in module.text for word in RAISES_IT):
                continue
            if _may_have_own_rates(project, module, call) or _may_be_raised(project, module, call):
                continue
            yield Finding(
                claim=f"`{name.rsplit('.', 1)[-1]}` is made with a learning rate of 0",
                strength=Strength.STRONG,
                evidence=(module.cite(call, "lr is 0 here"),),
                shows="lr-zero",
                is_symptom=True,
                location=module.location(call),
            )


def _may_have_own_rates(project: Project, module: Module, made: ast.Call) -> bool:
    """Tell whether the parameters may come in groups with a rate each; `lr` is then unused."""
    at: ast.AST = module.function_of(made) or module.tree
    given = argument(made, "params", 0)
    known = resolve(project, module, at, given)
    if known is None:
        return True
    if any(isinstance(n, ast.Dict) and "lr" in map(literal, n.keys) for n in ast.walk(known)):
        return True
    names = [n for n in ast.walk(known) if isinstance(n, ast.Call)]
    return isinstance(known, ast.Call) and not any(_gives_parameters(n) for n in names)


def _gives_parameters(call: ast.Call) -> bool:
    return (key_of(call.func) or "").rsplit(".", 1)[-1] in ("parameters", "named_parameters")


def _may_be_raised(project: Project, module: Module, made: ast.Call) -> bool:
    """Tell whether the optimizer is handed to what writes rates, or to what is out of sight."""
    above = module.parents.get(made)
    keys = {key_of(t) for t in getattr(above, "targets", [])}
    for call, name in module.calls():
        if _is_restored(call, keys):
            return True
        given = [*call.args, *(k.value for k in call.keywords)]
        if not any(g is made or key_of(g) in keys - {None} for g in given):
            continue
        found = project.find_function(module, name)
        text = module.text if found is None else found[0].text
        is_plain = name.startswith("torch.") or name.rsplit(".", 1)[-1] in USES_ONLY
        if any(word in text for word in RAISES_IT) or (found is None and not is_plain):
            return True
    return False


def _is_restored(call: ast.Call, keys: set[str | None]) -> bool:
    """Tell whether a call loads the state of an optimizer; its rates are part of that."""
    func = call.func
    is_load = isinstance(func, ast.Attribute) and func.attr == "load_state_dict"
    return is_load and isinstance(func, ast.Attribute) and key_of(func.value) in keys - {None}


def _program(rate: str, after: str = "", held: str = "model.parameters()", more: str = "") -> Run:
    text = f"import torch\noptimizer = torch.optim.SGD({held}, lr={rate})\n{after}\n"
    return make_run(sources={"train.py": text, "engine.py": more})


_TRAIN = "from engine import train\ntrain(model, optimizer)"
_STEPS = "def train(model, optimizer):\n    optimizer.step()\n"
_WRITES = "def train(model, optimizer):\n    optimizer.param_groups[0]['lr'] = 0.1\n"

FIRES = {
    "zero": _program("0"),
    "zero as a float": _program("0.0"),
    "handed to what only steps": _program("0", _TRAIN, more=_STEPS),
    "groups without rates": _program(
        "0", held='[{"params": a.parameters()}, {"params": b.parameters()}]'
    ),
}

SILENT = {
    "a rate": _program("0.1"),
    "near miss: a schedule raises it": _program(
        "0.0", "scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)"
    ),
    "near miss: groups with their own rates": _program(
        "0", held='[{"params": a.parameters(), "lr": 0.1}, {"params": b.parameters(), "lr": 0.2}]'
    ),
    "near miss: groups out of sight": _program("0", held="groups_of(model)"),
    "near miss: written in another file": _program("0", _TRAIN, more=_WRITES),
    "near miss: handed out of sight": _program("0", "warm_up(optimizer, 0)"),
    "near miss: a rate from a checkpoint": _program("0", "optimizer.load_state_dict(saved)"),
    "near miss: written later": _program("0", "optimizer.param_groups[0]['lr'] = 0.1"),
}
