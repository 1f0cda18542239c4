"""Backward ran a second time through one graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.acts import Act, Do
from traindx.source.errors import Culprit, explain, make_failed_run, match_root
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import key_of
from traindx.source.patches import diff, inserting_after, replacing

MESSAGE = re.compile(
    r"Trying to backward through the graph (?:a )?second time|Trying to backward through the graph "
    r"second time|saved (?:tensors|intermediate (?:values|results)).{0,60}(?:already )?been freed"
)


@detector(needs=("failure",), suggests=("graph-freed", "graph-retained-across-steps"))
def check(run: Run) -> Iterator[Finding]:
    """Backward runs a second time through a graph that the first time freed.

    ## What it detects
    "Trying to backward through the graph a second time". With the source: state that one step
    hands to the next without `detach()`, a running sum on which `backward` is called, a loss that
    is computed before the loop, or two calls of `backward` that share one forward pass.

    ## Why it matters
    `retain_graph=True`, which the message proposes, silences it and keeps all earlier graphs in
    memory; it is right only where two losses share one forward pass on purpose.

    ## What to do
    Detach what is carried from step to step; sum losses that share a forward pass and call
    `backward` once.

    ## When it is wrong
    Without the source the two cannot be told apart by the message alone. If the first step passes
    and the second fails, something is carried over.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure, _ = hit
    shows, culprit = _reason(project_of(run))
    claim = "Backward reaches a graph that an earlier backward pass has freed"
    if culprit is not None:
        claim += f": {culprit.says}"
    guesses = {"graph-freed": Strength.STRONG, "graph-retained-across-steps": Strength.WEAK}
    yield explain(
        run, failure, claim, shows=shows, suggests={} if shows else guesses, culprit=culprit
    )


def _reason(project: Project) -> tuple[str | None, Culprit | None]:
    for loop in training_loops(project):
        for backward in loop.does(Do.BACKWARD):
            found = _carried_state(project, loop, backward) or _running_sum(loop, backward)
            if found is not None:
                return "graph-retained-across-steps", found
            found = _made_before(loop, backward) or _repeated(loop, backward)
            if found is not None:
                return "graph-freed", found
    return None, None


def _assignments(loop: TrainingLoop) -> list[ast.Assign]:
    return [n for n in ast.walk(loop.node) if isinstance(n, ast.Assign)]


def _targets(node: ast.Assign) -> list[str]:
    parts = [p for t in node.targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return [k for k in map(key_of, parts) if k]


def _carried_state(project: Project, loop: TrainingLoop, backward: Act) -> Culprit | None:
    """`out, hidden = model(x, hidden)`: what a call returns goes into the same call next time."""
    for node in _assignments(loop):
        if not isinstance(node.value, ast.Call):
            continue
        given = [key_of(a) for a in (*node.value.args, *(k.value for k in node.value.keywords))]
        for name in _targets(node):
            is_carried = name in given and not _is_cut(loop, name) and len(_targets(node)) > 1
            statement = backward.statement
            if is_carried and statement is not None and backward.module is loop.module:
                detached = f"{name}.detach()"
                if any("LSTM" in m.text for m in project.modules):
                    detached = f"tuple(h.detach() for h in {name})"
                edit = inserting_after(loop.module, statement, f"{name} = {detached}")
                says = f"{name} carries the graph of one step into the next"
                return Culprit(loop.module, node, says, diff(loop.module, edit))
    return None


def _is_cut(loop: TrainingLoop, name: str) -> bool:
    """Tell whether the loop detaches or renews the value."""
    for node in _assignments(loop):
        if name in _targets(node):
            text = ast.unparse(node.value)
            is_fresh = not re.search(rf"\b{re.escape(name)}\b", text)
            if "detach" in text or ".data" in text or "repackage" in text or is_fresh:
                return True
    return f"{name}.detach_()" in ast.unparse(loop.node)


def _running_sum(loop: TrainingLoop, backward: Act) -> Culprit | None:
    for node in ast.walk(loop.node):
        if not isinstance(node, ast.AugAssign) or key_of(node.target) != backward.target:
            continue
        innermost = backward.loops[-1]
        bound = [n for n in ast.walk(innermost) if isinstance(n, ast.Assign)]
        renewed = any(backward.target in _targets(n) for n in bound)
        inside = any(n is node for n in ast.walk(innermost))
        term = key_of(node.value)
        subject = backward.subject
        if renewed or not inside or subject is None:
            continue
        says = f"{backward.target} adds up the graphs of all steps, and backward goes through each"
        edits = [replacing(subject, term), replacing(node.value, f"{term}.item()")] if term else []
        return Culprit(loop.module, node, says, diff(loop.module, *edits) if edits else None)
    return None


def _made_before(loop: TrainingLoop, backward: Act) -> Culprit | None:
    """A loss that is computed once, before the loop that calls backward on it."""
    name, module = backward.target, backward.module
    inside = _assignments(loop)
    bound = {k for n in inside for k in _targets(n)}
    first = int(getattr(loop.node, "lineno", 0))
    scope = module.function_of(loop.node) or module.tree
    above = [n for n in ast.walk(scope) if isinstance(n, ast.Assign) and n.lineno < first]
    for node in above:
        if name and name not in bound and name in _targets(node):
            says = f"{name} is computed once, before the loop, and its graph used in every step"
            return Culprit(module, node, says)
    return None


def _repeated(loop: TrainingLoop, backward: Act) -> Culprit | None:
    others = [b for b in loop.does(Do.BACKWARD) if b is not backward and b.line > backward.line]
    for other in others:
        if other.loops != backward.loops or other.guards != backward.guards:
            continue
        forwards = [a for a in loop.does(Do.FORWARD) if backward.line < a.line <= other.line]
        if not forwards and not _retains(backward):
            says = (
                f"backward on lines {backward.line} and {other.line} goes through one forward pass"
            )
            return Culprit(other.module, other.statement or other.node, says)
    return None


def _retains(backward: Act) -> bool:
    call = backward.node
    return isinstance(call, ast.Call) and any(k.arg == "retain_graph" for k in call.keywords)


_ERROR = (
    "RuntimeError: Trying to backward through the graph a second time (or directly access saved "
    "tensors after they have already been freed)."
)
_LOOP = """
import torch
model = torch.nn.GRU(8, 16)
optimizer = torch.optim.Adam(model.parameters())
hidden = torch.zeros(1, 4, 16)
for x, y in loader:
    optimizer.zero_grad()
    out, hidden = model(x, hidden)
    loss = torch.nn.functional.mse_loss(out, y)
    loss.backward()
    optimizer.step()
"""

FIRES = {
    "the message alone": make_failed_run(_ERROR, "loss.backward()"),
    "a hidden state": make_failed_run(_ERROR, "loss.backward()", sources={"train.py": _LOOP}),
}

SILENT = {
    "near miss: a loss without a graph": make_failed_run(
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    ),
    "another error": make_failed_run("ValueError: too many values to unpack (expected 2)"),
}
