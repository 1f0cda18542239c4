"""A validation loss that is computed without the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do, acts_of
from traindx.source.module import Function, Module, key_of


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
    A baseline that scores the inputs on purpose has no model to put into evaluation mode.
    """
    project = project_of(run)
    for module in project.training_modules:
        for function in module.functions.values():
            acts = acts_of(project, module, function)
            models = {a.target for a in acts if a.do is Do.EVAL_MODE and a.function is function}
            for loss in acts:
                if models and loss.do is Do.LOSS and loss.function is function:
                    yield from _untouched(module, function, models, loss)


def _untouched(
    module: Module, function: Function, models: set[str], loss: Act
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


_LOOP = """
import torch

@torch.no_grad()
def validate(model, criterion, loader, prepare):
    model.eval()
    total = 0.0
    for batch in loader:
        inputs, targets = prepare(batch)
        {line}
        total += loss.item()
    return total / len(loader)
"""


def _loop(line: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(line=line)})


FIRES = {"inputs against targets": _loop("loss = criterion(inputs, targets)")}

SILENT = {
    "outputs against targets": _loop("loss = criterion(model(inputs), targets)"),
    "near miss: the outputs under the name of the inputs": _loop(
        "inputs = model(inputs); loss = criterion(inputs, targets)"
    ),
    "near miss: the model is handed to the loss": _loop("loss = criterion(inputs, targets, model)"),
}
