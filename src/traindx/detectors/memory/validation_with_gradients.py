"""A validation loop records graphs that nobody needs."""

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
from traindx.source.patches import diff, inserting_before, within
from traindx.source.phases import Evaluation, evaluations, is_without_gradients
from traindx.source.project import Project

SWITCHES = frozenset({"set_grad_enabled", "set_grad_mode", "requires_grad_", "no_grad"})
USES_GRADIENTS = frozenset({"requires_grad", "grad", "autograd", "requires_grad_", "enable_grad"})

# contexts and decorators that are known to leave gradients as they are
KEEPS_GRADIENTS = re.compile(
    r"autocast|enable_grad|profile|record_function|tqdm|progress|timer|(?:^|\.)(?:open|suppress"
    r"|nullcontext|staticmethod|classmethod|compile|join|Progress|catch_warnings|redirect_stdout"
    r"|main|command|option|record|cache|lru_cache|wraps|property|device|stream|no_sync)$"
    r"|amp\.|SummaryWriter|logging|wandb|mlflow",
    re.IGNORECASE,
)


@detector(needs=("source",), suggests=("evaluation-with-grad",))
def check(run: Run) -> Iterator[Finding]:
    """A validation loop runs the model while gradients are recorded.

    ## What it detects
    A loop over validation or test data that runs the model and learns nothing from it, outside any
    `no_grad` or `inference_mode`, in a program whose calls are in sight from its start.

    ## Why it matters
    Every forward pass builds a graph and keeps its activations: validation needs as much memory as
    training, runs slower, and may run out of memory with a batch size that trains well.

    ## What to do
    Put `@torch.no_grad()` on the function, or the loop into `with torch.no_grad():`.

    ## When it is wrong
    Evaluation that needs gradients (attacks, saliency, test-time training) mentions them in the
    loop and is left alone, as is a function whose callers are out of sight, and a loop within a
    context, or under a decorator, that is not known to leave gradients on.
    """
    project = project_of(run)
    for evaluation in evaluations(project):
        forward, module, loop = evaluation.forward, evaluation.module, evaluation.block
        if is_without_gradients(forward) or not isinstance(loop, ast.For):
            continue
        if not _is_in_sight(evaluation) or _is_discarded(forward):
            continue
        if _uses_gradients(module, loop) or _is_switched_off(project, evaluation):
            continue
        yield Finding(
            claim=f"The {evaluation.phase} loop runs {forward.target} while gradients are recorded",
            strength=Strength.STRONG,
            evidence=(
                module.cite(loop, f"the loop over {module.source(loop.iter)}"),
                forward.module.cite(forward.node, "a graph is built here, and never used"),
            ),
            shows="evaluation-with-grad",
            location=module.location(forward.statement or loop),
            patch=_patch(evaluation),
        )


def _is_in_sight(evaluation: Evaluation) -> bool:
    """Tell whether the program is seen from its start, so that no caller can switch off."""
    function = evaluation.module.function_of(evaluation.block)
    if evaluation.entry.scope is not function:
        return True
    return any(a.do is Do.BACKWARD for a in evaluation.entry.acts)


def _is_discarded(forward: Act) -> bool:
    """Tell whether the output is thrown away: a pass that only renews batch statistics."""
    statement = forward.statement
    is_bare = isinstance(statement, ast.Expr) and statement.value is forward.node
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return is_bare or any(isinstance(t, ast.Name) and t.id == "_" for t in targets)


def _is_under_unknown(evaluation: Evaluation) -> bool:
    """Tell whether a context or decorator around the pass may switch gradients off."""
    module = evaluation.module
    if any(not KEEPS_GRADIENTS.search(c) for c in evaluation.forward.contexts):
        return True
    function = module.function_of(evaluation.block)
    decorators = function.decorator_list if function is not None else []
    called = (d.func if isinstance(d, ast.Call) else d for d in decorators)
    return any(not KEEPS_GRADIENTS.search(module.qualified(d) or "") for d in called)


def _uses_gradients(module: Module, loop: ast.For) -> bool:
    scope = module.function_of(loop) or loop
    nodes = ast.walk(scope if isinstance(scope, ast.For) else loop)
    return any(isinstance(n, ast.Attribute) and n.attr in USES_GRADIENTS for n in nodes)


def _is_switched_off(project: Project, evaluation: Evaluation) -> bool:
    modules = {a.module for a in evaluation.entry.acts} | {evaluation.module}
    for module in modules:
        for call, _ in module.calls():
            func = call.func
            last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if last in SWITCHES and isinstance(module.parents.get(call), ast.Expr):
                return True
    return _is_under_unknown(evaluation) or _is_decorated_forward(project, evaluation)


def _is_decorated_forward(project: Project, evaluation: Evaluation) -> bool:
    found = project.find_class(evaluation.forward.module, evaluation.forward.value.made_by)
    if found is None:
        return False
    home, cls = found
    forward = home.functions.get(f"{home.dotted(cls)}.forward")
    return forward is not None and any("grad" in ast.unparse(d) for d in forward.decorator_list)


def _patch(evaluation: Evaluation) -> str | None:
    module, loop = evaluation.module, evaluation.block
    if module.aliases.get("torch") != "torch":
        return None
    function = module.function_of(loop)
    if function is not None and not _trains(evaluation, function):
        return diff(module, inserting_before(module, function, "@torch.no_grad()"))
    edit = within(module, loop, "with torch.no_grad():")
    return None if edit is None else diff(module, edit)


def _trains(evaluation: Evaluation, function: Function) -> bool:
    inside = (a for a in evaluation.entry.acts if a.function is function)
    return evaluation.entry.scope is function or any(a.do is Do.BACKWARD for a in inside)


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

{decorator}
def validate(model, val_loader):
    model.eval()
    correct = 0
    for data, target in val_loader:
        {forward}
        correct += (output.argmax(1) == target).sum().item()
    return correct

for epoch in range(3):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    {call}
"""


def _program(decorator: str = "", forward: str = "output = model(data)", call: str = "") -> Run:
    call = call or "validate(model, val_loader)"
    text = _PROGRAM.format(decorator=decorator, forward=forward, call=call)
    return make_run(sources={"train.py": text})


_INLINE = """
import torch
from torch import nn

def main():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(data), target).backward()
            optimizer.step()
        model.eval()
        for data, target in val_loader:
            output = model(data)

main()
"""

_IN_CONTEXT = _INLINE.replace(
    "for data, target in val_loader:\n            output",
    "with {context}:\n            for data, target in val_loader:\n                output",
)


def _in_context(context: str, before: str = "") -> Run:
    text = _IN_CONTEXT.format(context=context)
    return make_run(sources={"train.py": text.replace("def main", f"{before}\ndef main")})


FIRES = {
    "a validation function": _program(),
    "in a context that leaves gradients on": _in_context("torch.autocast('cuda')"),
    "a loop in the epoch": make_run(sources={"train.py": _INLINE}),
}

SILENT = {
    "near miss: a context under a name": _in_context("off()", "off = torch.no_grad"),
    "near miss: a context that is made before": _in_context("context", "context = torch.no_grad()"),
    "near miss: one context or another": _in_context("torch.no_grad() if fast else attack()"),
    "near miss: a context of one's own": _in_context("evaluating(model)"),
    "near miss: a decorator of one's own": _program("@frozen"),
    "near miss: a pass that only renews batch statistics": _program(forward="_ = model(data)"),
    "decorated": _program("@torch.no_grad()"),
    "inference mode": _program("@torch.inference_mode()"),
    "near miss: the caller switches off": _program(
        call="with torch.no_grad():\n        validate(model, val_loader)"
    ),
    "near miss: an attack needs gradients": _program(
        forward="data.requires_grad = True; output = model(data)"
    ),
    "callers out of sight": make_run(
        sources={
            "evaluate.py": "import torch\n\ndef evaluate(model, test_loader):\n"
            "    for x, y in test_loader:\n        print(model(x))\n"
        }
    ),
}
