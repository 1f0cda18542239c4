"""A validation loss that is computed without the model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do, acts_of
from traindx.source.module import Function, Module, key_of
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

# what the values or the call that makes them are named where a model has had its part in them
OUTPUT = re.compile(
    r"out|pred|logit|score|prob|recon|hat$|forward|infer|(?:^|_)(?:run|step|model|net)(?:_|$)",
    re.IGNORECASE,
)
GROWS = ("append", "extend", "add", "insert", "put")


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Iterator[Finding]:
    """A loop evaluates a model and compares the targets with the inputs instead of the outputs.

    ## What it detects
    A function that puts its model into evaluation mode and computes a loss in a loop over batches,
    on values that were unpacked from the batch and that nothing has touched since, while the model
    is neither called nor handed to anything in that loop.

    ## Why it matters
    The number says nothing about the model: it is the same after every epoch, and early stopping
    and the best checkpoint are chosen by it.

    ## What to do
    Run the model on the inputs and give its outputs to the loss.

    ## When it is wrong
    A baseline that scores the inputs on purpose has no model to put into evaluation mode. Outputs
    that were gathered before and are scored in a loop of their own are left alone, as are a loss
    that was made with the model, and values that are named as outputs.
    """
    project = project_of(run)
    for module in project.training_modules:
        for function in module.functions.values():
            acts = acts_of(project, module, function)
            models = {a.target for a in acts if a.do is Do.EVAL_MODE and a.function is function}
            for loss in acts:
                if models and loss.do is Do.LOSS and loss.function is function:
                    yield from _untouched(project, module, function, models, loss)


def _untouched(
    project: Project, module: Module, function: Function, models: set[str], loss: Act
) -> Iterator[Finding]:
    loop = loss.loops[-1] if loss.loops else None
    call = loss.node
    given = call.args[:2] if isinstance(call, ast.Call) else []
    if not isinstance(loop, ast.For) or loop not in module.parents or len(given) != 2:
        return
    names = [n.id for n in given if isinstance(n, ast.Name)]
    used = {
        key_of(n)
        for s in loop.body
        for n in ast.walk(s)
        if isinstance(n, (ast.Name, ast.Attribute))
    }
    if len(names) != 2 or used & models or not _are_of_one_batch(loop, names):
        return
    if _holds_outputs(function, loop, models) or _may_run_inside(
        project, loop, names, loss, models
    ):
        return
    yield Finding(
        claim=f"The loss in `{function.name}` compares `{names[0]}` with `{names[1]}`, both data",
        strength=Strength.STRONG,
        evidence=(
            module.cite(call, "neither is an output of the model"),
            module.cite(loop, f"{', '.join(sorted(models))} does not run in this loop"),
        ),
        shows="metric-bug",
        is_symptom=True,
        location=module.location(call),
    )


def _are_of_one_batch(loop: ast.For, names: list[str]) -> bool:
    """Tell whether both names come from one unpacking in the loop, and from nothing else."""
    bound = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Assign)]
    held = [(t, n) for n in bound for t in n.targets for p in ast.walk(t) if key_of(p) in names]
    if not held:
        target = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        return set(names) <= target
    places = {n for _, n in held}
    unpacked = {n.id for t, _ in held for n in ast.walk(t) if isinstance(n, ast.Name)}
    return len(places) == 1 and set(names) <= unpacked


def _holds_outputs(function: Function, loop: ast.For, models: set[str]) -> bool:
    """Tell whether the loop goes over what the model has had its part in before."""
    touched = set(models)
    earlier = [n for n in ast.walk(function) if getattr(n, "lineno", loop.lineno) < loop.lineno]
    for _ in range(3):
        for node in earlier:
            if _keys(_given(node)) & touched:
                touched |= _keys(_taking(node))
    return bool(_keys([loop.iter]) & touched)


def _given(node: ast.AST) -> list[ast.expr]:
    """What a statement puts into something."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        return [node.value]
    if isinstance(node, ast.For):
        return [node.iter]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.args if node.func.attr in GROWS else []
    return []


def _taking(node: ast.AST) -> list[ast.expr]:
    """What a statement puts something into."""
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, (ast.AugAssign, ast.For)):
        return [node.target]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return [node.func.value]
    return []


def _keys(nodes: list[ast.expr]) -> set[str]:
    return {k for node in nodes for n in ast.walk(node) if (k := key_of(n))} - {"self"}


def _is_made_with(project: Project, loss: Act, models: set[str]) -> bool:
    """Tell whether a loss was given the model when it was made."""
    called = loss.node.func if isinstance(loss.node, ast.Call) else loss.node
    bound = project.lookup(loss.module, loss.node, key_of(called) or "")
    made = [v for v in (*bound, loss.value.call) if isinstance(v, ast.Call)]
    given = [a for call in made for a in (*call.args, *(k.value for k in call.keywords))]
    kinds = {value_of(project, loss.module, loss.node, a).kind for a in given}
    return Kind.MODEL in kinds or bool(_keys(given) & models)


def _may_run_inside(
    project: Project, loop: ast.For, names: list[str], loss: Act, models: set[str]
) -> bool:
    """Tell whether the model may run where it is not named: in the loss, or in a step."""
    if _is_made_with(project, loss, models):
        return True
    bound = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Assign)]
    values = [n.value for n in bound if _keys(n.targets) & set(names)]
    called = [key_of(v.func) or "" for v in values if isinstance(v, ast.Call)]
    return any(OUTPUT.search(n.rsplit(".", 1)[-1]) for n in (*names, *called))


_LOOP = """
import torch

@torch.no_grad()
def validate(model, criterion, loader, prepare):
    model.eval()
    total = 0.0
    {made}
    for batch in loader:
        inputs, targets = prepare(batch)
        {line}
        total += loss.item()
    return total / len(loader)
"""


def _loop(line: str, made: str = "pass") -> Run:
    return make_run(sources={"train.py": _LOOP.format(line=line, made=made)})


_GATHERED = """
import torch

@torch.no_grad()
def validate(model, criterion, loader):
    model.eval()
    found, total = [], 0.0
    for x, y in loader:
        found.append((model(x), y))
    for a, b in found:
        total += criterion(a, b).item()
    return total
"""


def _gathered() -> Run:
    return make_run(sources={"train.py": _GATHERED})


FIRES = {"inputs against targets": _loop("loss = criterion(inputs, targets)")}

SILENT = {
    "outputs against targets": _loop("loss = criterion(model(inputs), targets)"),
    "near miss: the outputs under the name of the inputs": _loop(
        "inputs = model(inputs); loss = criterion(inputs, targets)"
    ),
    "near miss: outputs that were gathered before": _gathered(),
    "near miss: a step that may run the model": _loop(
        "inputs, targets = run_step(batch); loss = criterion(inputs, targets)"
    ),
    "near miss: a loss that holds the model": _loop(
        "loss = criterion(inputs, targets)", made="criterion = Residual(model)"
    ),
    "near miss: the model is handed to the loss": _loop("loss = criterion(inputs, targets, model)"),
}
