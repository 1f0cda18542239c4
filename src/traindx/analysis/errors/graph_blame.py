"""Why a graph failed: where the source cuts it off, or changes what backward still needs."""

from __future__ import annotations

import ast

from traindx.analysis.errors.culprits import Culprit, FailingStatement, module_at, site_of
from traindx.analysis.errors.messages import KnownError
from traindx.analysis.program.carried import carried_state, made_before, repeated, running_sum
from traindx.analysis.program.cuts import cuts_before, freezing, switched_off
from traindx.analysis.program.loops import training_loops
from traindx.analysis.program.overwrites import OPERATORS, Overwrite, changed_after, overwrites_in
from traindx.analysis.program.patches import diff, replacing
from traindx.analysis.program.project import Project, project_of
from traindx.analysis.program.syntax import key_of
from traindx.analysis.program.written_acts import WrittenDo
from traindx.model.run import Failure, Run

HAND_OVER = ("training_step", "compute_loss")  # Lightning, the Trainer of transformers
OF_PARAMETERS = ("", "t", "asstrided", "transpose")  # a weight as a linear layer reads it
BY_OPERATOR = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}


def why_no_graph(run: Run, failure: Failure) -> tuple[str | None, Culprit | None]:
    """Return the cause for which a loss has no graph, and the line that it is on."""
    project = project_of(run)
    ran = [m for f in failure.frames if (m := module_at(project, f.file)) is not None]
    off = switched_off(project, ran)
    if off is not None:
        return "no-grad-training", off
    for site in _loss_sites(run, failure, project):
        for cause, culprit in cuts_before(project, site):
            return cause, culprit
    for module in project.modules:
        frozen = freezing(module)
        if frozen is not None:
            return "frozen-parameters", frozen
    return None, None


def _loss_sites(run: Run, failure: Failure, project: Project) -> list[FailingStatement]:
    """The statement that raised, or else what hands the loss to a framework, or calls backward."""
    site = site_of(run, failure)
    if site is not None and _calls_backward(site.node):
        return [site]
    handed = [
        FailingStatement(m, n)
        for m in project.modules
        for name, function in m.functions.items()
        if name.rpartition(".")[2] in HAND_OVER
        for n in ast.walk(function)
        if isinstance(n, ast.Return)
    ]
    if handed or site is not None:
        return handed or [s for s in (site,) if s is not None]
    return [
        FailingStatement(m, n)
        for m in project.modules
        for n in m.nodes(ast.Expr)
        if _calls_backward(n)
    ]


def _calls_backward(node: ast.AST) -> bool:
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(isinstance(f, ast.Attribute) and f.attr == "backward" for f in calls)


def overwriting(run: Run, operation: str, *, is_leaf: bool) -> Culprit | None:
    """Return the line that changes in place what an operation, or a parameter, kept."""
    project = project_of(run)
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
        for backward in loop.does(WrittenDo.BACKWARD):
            steps = loop.does(WrittenDo.STEP, WrittenDo.SCALER_STEP)
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


def leaf_change(known: KnownError) -> Culprit | None:
    """Return the statement that changes a leaf in place, with a patch that wraps it."""
    site = site_of(known.run, known.failure)
    if site is None:
        return None
    for change in overwrites_in(site.module, site.function or site.module.tree):
        if change.statement is site.node:
            line = site.module.lines[site.node.lineno - 1]
            indent = line[: len(line) - len(line.lstrip())]
            text = f"with torch.no_grad():\n{indent}    {change.text}"
            is_plain = "\n" not in change.text and "import torch" in site.module.text
            patch = diff(site.module, replacing(site.node, text)) if is_plain else None
            says = f"`{change.text}` modifies {change.target} in place"
            return Culprit(site.module, site.node, says, patch)
    return None


def why_second_backward(project: Project) -> tuple[str | None, Culprit | None]:
    """Return why a graph is used twice: its cause and the line that carries it over."""
    for loop in training_loops(project):
        for backward in loop.does(WrittenDo.BACKWARD):
            found = carried_state(project, loop, backward) or running_sum(loop, backward)
            if found is not None:
                return "graph-retained-across-steps", found
            found = made_before(loop, backward) or repeated(loop, backward)
            if found is not None:
                return "graph-freed", found
    return None, None
