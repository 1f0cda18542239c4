"""A tensor that backward needed was changed in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.acts import Do
from traindx.source.errors import Culprit, explain, make_failed_run, match_root
from traindx.source.loops import training_loops
from traindx.source.module import key_of
from traindx.source.overwrites import OPERATORS, Overwrite, changed_after, overwrites_in
from traindx.source.patches import diff

MESSAGE = re.compile(
    r"modified by an inplace operation(?:: \[([\w.]+) \[([\d, ]*)\]\](?:, which is output (\d+) of "
    r"(\w+),?)? is at version (\d+); expected version (\d+))?"
)
OF_PARAMETERS = ("", "t", "asstrided", "transpose")  # a weight as a linear layer reads it
BY_OPERATOR = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}


@detector(needs=("failure",), suggests=("in-place-modification",))
def check(run: Run) -> Iterator[Finding]:
    """Backward fails because a tensor it had kept was changed in place.

    ## What it detects
    "one of the variables needed for gradient computation has been modified by an inplace
    operation", with the operation that made the tensor, its shape and both versions. With the
    source, the statement that changed it: `x *= mask`, `x[i] = v`, `x.add_(y)`, `inplace=True`, or
    an optimizer step between a forward pass and its backward pass.

    ## Why it matters
    The traceback ends at `backward()`, far from the line at fault, and names the operation that
    made the tensor, not the one that changed it.

    ## What to do
    Write that one change out of place: `x = x * mask`. If an optimizer step lies between, run the
    forward pass again after the step.

    ## When it is wrong
    Without the source only the tensor is known; which line changed it is then for you to find.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure, found = hit
    operation = re.sub(r"(?:Backward)?\d*$", "", found[4] or "")
    culprit = _culprit(project_of(run), operation, is_leaf=bool(found[2]) and not operation)
    claim = _claim(found, operation)
    yield explain(run, failure, claim, shows="in-place-modification", culprit=culprit)


def _claim(found: re.Match[str], operation: str) -> str:
    if found[2] is None:
        return "A tensor was changed in place between the forward pass and its backward pass"
    now, then = int(found[5]), int(found[6])
    made = f" made by {operation}" if operation else " (a parameter, or another leaf)"
    count = now - then
    times = "once" if count == 1 else f"{count} times"
    return (
        f"The [{found[2]}] tensor{made} was changed in place {times} after the forward pass had "
        f"kept it for backward: version {now}, {then} expected"
    )


def _culprit(project: Project, operation: str, *, is_leaf: bool) -> Culprit | None:
    if is_leaf or operation.lower() in OF_PARAMETERS:
        return _step_between(project)
    changes = [
        o
        for module in project.modules
        for function in (*module.functions.values(), module.tree)
        for o in changed_after(project, module, function, operation)
    ]
    changes = changes or _likely(project, operation)
    if not changes:
        return _step_between(project)
    first = changes[0]
    same = [o for o in changes if o.module is first.module and o.target == first.target]
    edits = [o.edit for o in same if o.edit is not None]
    patch = diff(first.module, *edits) if len(edits) == len(same) else None
    also = "".join(f", again on line {o.statement.lineno}" for o in same[1:])
    says = f"`{first.text}` changes {first.target or 'it'} in place{also}"
    return Culprit(first.module, first.statement, says, patch)


def _likely(project: Project, operation: str) -> list[Overwrite]:
    """The one change in a forward pass that can be meant: of that kind, or the only one."""
    changes = [
        o
        for module in project.modules
        for name, function in module.functions.items()
        if name.endswith("forward")
        for o in overwrites_in(module, function)
        if not o.target.startswith("self.")
    ]
    kind = BY_OPERATOR.get(operation.lower())
    alike = [o for o in changes if _operator(o) == kind] if kind else []
    chosen = alike if len(alike) == 1 else changes
    return chosen if len({o.target for o in chosen}) == 1 else []


def _operator(change: Overwrite) -> str | None:
    node = change.statement
    return OPERATORS.get(type(node.op)) if isinstance(node, ast.AugAssign) else None


def _step_between(project: Project) -> Culprit | None:
    """The optimizer step that changes weights between a loss and its backward pass."""
    for loop in training_loops(project):
        for backward in loop.does(Do.BACKWARD):
            steps = loop.does(Do.STEP, Do.SCALER_STEP)
            made = _made_at(loop.node, backward.target, backward.line)
            for step in steps:
                same = step.module is backward.module and step.function is backward.function
                if same and made and made < step.line < backward.line:
                    says = (
                        f"{step.target}.step() changes weights that {backward.target}, computed on "
                        f"line {made}, still needs for its backward pass on line {backward.line}"
                    )
                    return Culprit(step.module, step.statement or step.node, says)
    return None


def _made_at(loop: ast.AST, name: str, before: int) -> int | None:
    lines = [
        n.lineno
        for n in ast.walk(loop)
        if isinstance(n, ast.Assign) and n.lineno < before and name in map(key_of, n.targets)
    ]
    return max(lines, default=None)


_ERROR = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an "
    "inplace operation: [torch.FloatTensor [256, 128]], which is output 0 of ReluBackward0, is at "
    "version 2; expected version 1 instead. Hint: enable anomaly detection."
)
_MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        x = torch.relu(self.fc1(x))
        if self.training:
            x *= torch.rand_like(x) > 0.5  # dropout by hand
        return self.fc2(x)
"""

FIRES = {
    "the message alone": make_failed_run(_ERROR, "loss.backward()"),
    "with the source": make_failed_run(_ERROR, sources={"model.py": _MODEL}),
}

SILENT = {
    "near miss: another error of backward": make_failed_run(
        "RuntimeError: Trying to backward through the graph a second time", "loss.backward()"
    ),
    "the same code without an error": make_run(sources={"model.py": _MODEL}),
}
