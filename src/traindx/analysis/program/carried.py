"""Graphs that a training loop goes through twice: what it carries from one step into the next."""

from __future__ import annotations

import ast
import re

from traindx.analysis.errors.culprits import Culprit
from traindx.analysis.program.loops import TrainingLoop
from traindx.analysis.program.patches import diff, inserting_after, replacing
from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import key_of
from traindx.analysis.program.written_acts import WrittenAct, WrittenDo


def _assignments(loop: TrainingLoop) -> list[ast.Assign]:
    return [n for n in ast.walk(loop.node) if isinstance(n, ast.Assign)]


def _targets(node: ast.Assign) -> list[str]:
    parts = [p for t in node.targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return [k for k in map(key_of, parts) if k]


def carried_state(project: Project, loop: TrainingLoop, backward: WrittenAct) -> Culprit | None:
    """Find `out, hidden = model(x, hidden)`: what a call returns goes into its next call."""
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


def running_sum(loop: TrainingLoop, backward: WrittenAct) -> Culprit | None:
    """Find a sum over steps on which backward is called: it goes through every step again."""
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


def made_before(loop: TrainingLoop, backward: WrittenAct) -> Culprit | None:
    """Find a loss that is computed once, before the loop that calls backward on it."""
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


def repeated(loop: TrainingLoop, backward: WrittenAct) -> Culprit | None:
    """Find a second backward pass through one forward pass."""
    others = [
        b for b in loop.does(WrittenDo.BACKWARD) if b is not backward and b.line > backward.line
    ]
    for other in others:
        if other.loops != backward.loops or other.guards != backward.guards:
            continue
        forwards = [a for a in loop.does(WrittenDo.FORWARD) if backward.line < a.line <= other.line]
        if not forwards and not _retains(backward):
            says = (
                f"backward on lines {backward.line} and {other.line} goes through one forward pass"
            )
            return Culprit(other.module, other.statement or other.node, says)
    return None


def _retains(backward: WrittenAct) -> bool:
    call = backward.node
    return isinstance(call, ast.Call) and any(k.arg == "retain_graph" for k in call.keywords)
