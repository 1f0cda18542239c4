"""A function that scores a model records graphs that nobody needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.module import Function, Module
from traindx.source.patches import diff, inserting_before
from traindx.source.phases import LEARNS, Entry, entries, is_same_model, is_without_gradients

SWITCHES = frozenset({"set_grad_enabled", "set_grad_mode", "requires_grad_", "no_grad"})
USES_GRADIENTS = re.compile(r"requires_grad|autograd|\.grad\b|enable_grad|backward")
SCORES = re.compile(r"accura|eval|valid|score|metric|(?:^|_)test(?:_|$)", re.IGNORECASE)
READS = frozenset({"item", "argmax", "numpy", "tolist"})


@detector(needs=("source",), suggests=("evaluation-with-grad",))
def check(run: Run) -> Iterator[Finding]:
    """A function runs a model only to read off a number, and gradients are recorded.

    ## What it detects
    A function named for a score or an evaluation, without a loop over a loader, that calls `eval()`
    on a model, runs it outside any `no_grad` or `inference_mode`, and reads numbers off the
    outcome; and any function that gives back nothing of the outcome but `.item()`. In a program
    that trains and whose calls are in sight from its start.

    ## Why it matters
    The forward pass over all held-out data keeps every activation for a backward pass that never
    comes.

    ## What to do
    Put `@torch.no_grad()` on the function.

    ## When it is wrong
    Functions that mention gradients (attacks, saliency) and those that learn are left alone, and so
    are outputs that are handed on as they are.
    """
    project = project_of(run)
    for entry in entries(project):
        if not any(a.do is Do.BACKWARD for a in entry.acts):
            continue
        for function, acts in _functions(entry):
            is_number = _gives_only_numbers(function)
            found = _forward_with_gradients(acts, needs_mode=not is_number)
            if found is None or not (is_number or _reads_a_score(found.module, function)):
                continue
            if _is_switched_off(found.module):
                continue
            yield _finding(found, function)


def _functions(entry: Entry) -> Iterator[tuple[Function, list[Act]]]:
    """The functions that the program calls and that learn nothing, with what they do."""
    groups: dict[Function, list[Act]] = {}
    for act in entry.acts:
        if act.function is not None and act.function is not entry.scope:
            groups.setdefault(act.function, []).append(act)
    for function, acts in groups.items():
        if not any(a.do in LEARNS for a in acts) and not any(a.loops for a in _own(acts)):
            yield function, acts


def _own(acts: list[Act]) -> list[Act]:
    """Forward passes in a loop of the function itself; the loop over epochs calls it."""
    return [
        a for a in acts
        if a.do is Do.FORWARD and any(loop in a.module.enclosing(a.node) for loop in a.loops)
    ]  # fmt: skip


def _gives_only_numbers(function: Function) -> bool:
    """Tell whether a function ends in `.item()`s and hands no value to anything out of sight.

    Such a function cannot let anybody call backward on what it computed.
    """
    nodes = [n for n in ast.walk(function) if n is not function]
    given = [n.value for n in nodes if isinstance(n, ast.Return)]
    handed = (n.value for n in nodes if isinstance(n, ast.Expr))
    calls = (n for n in handed if isinstance(n, ast.Call) and (n.args or n.keywords))
    keeps = (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.Lambda)
    if USES_GRADIENTS.search(ast.unparse(function)) or any(isinstance(n, keeps) for n in nodes):
        return False
    targets = (t for n in nodes if isinstance(n, ast.Assign) for t in n.targets)
    if any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in targets) or any(calls):
        return False
    return bool(given) and all(v is not None and _is_number(v) for v in given)


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(map(_is_number, value.elts))
    func = value.func if isinstance(value, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "item"


def _forward_with_gradients(acts: list[Act], *, needs_mode: bool) -> Act | None:
    modes = [a for a in acts if a.do is Do.EVAL_MODE]
    for act in acts:
        if act.do is Do.FORWARD and not is_without_gradients(act):
            before = [m for m in modes if m.line < act.line and is_same_model(m, act)]
            if before or not needs_mode:
                return act
    return None


def _reads_a_score(module: Module, function: Function) -> bool:
    nodes = list(ast.walk(function))
    reads = any(isinstance(n, ast.Attribute) and n.attr in READS for n in nodes)
    text = ast.unparse(function)
    return bool(SCORES.search(function.name)) and reads and not USES_GRADIENTS.search(text)


def _is_switched_off(module: Module) -> bool:
    for call, name in module.calls():
        last = name.rsplit(".", 1)[-1]
        if last in SWITCHES and isinstance(module.parents.get(call), ast.Expr):
            return True
    return False


def _finding(forward: Act, function: Function) -> Finding:
    module = forward.module
    patch = None
    if module.aliases.get("torch") == "torch":
        patch = diff(module, inserting_before(module, function, "@torch.no_grad()"))
    return Finding(
        claim=f"The function {function.name} runs {forward.target} while gradients are recorded",
        strength=Strength.STRONG,
        evidence=(module.cite(forward.node, "a graph is built here, and never used"),),
        shows="evaluation-with-grad",
        location=module.location(forward.statement or forward.node),
        patch=patch,
    )


_PROGRAM = """
import torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{decorator}
def {name}():
    model.eval()
    {before}
    output = model(x_test)
    model.train()
    return {returned}

for epoch in range(3):
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    print({name}())
"""


def _program(
    decorator: str = "",
    name: str = "accuracy",
    before: str = "x_test = x[split:]",
    returned: str = "(output.argmax(1) == y).float().mean().item()",
) -> Run:
    text = _PROGRAM.format(decorator=decorator, name=name, before=before, returned=returned)
    return make_run(sources={"train.py": text})


_NUMBER = "nn.functional.cross_entropy(output, y).item()"

FIRES = {
    "a function that scores": _program(),
    "a function of a number, in whatever mode": make_run(
        sources={
            "train.py": _PROGRAM.format(
                decorator="", name="held_out", before="x_test = x[split:]", returned=_NUMBER
            )
            .replace("    model.eval()\n", "")
            .replace("    model.train()\n", "")
        }
    ),
}

SILENT = {
    "near miss: the loss itself is given back": _program(
        name="held_out", returned="nn.functional.cross_entropy(output, y)"
    ),
    "near miss: somebody else learns from it": _program(
        name="held_out", before="engine.learn(model(x_test))", returned=_NUMBER
    ),
    "decorated": _program("@torch.no_grad()"),
    "near miss: outputs are handed on": _program(name="features", returned="output"),
    "near miss: an attack needs gradients": _program(before="x_test.requires_grad = True"),
}
