"""Gradients are cleared between backward and step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import CLIPS, Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.patches import diff, inserting_after, removing
from traindx.source.project import Project

STEPS = (Do.STEP, Do.SCALER_STEP)


@detector(needs=("source",), suggests=("gradients-cleared-before-step",))
def check(run: Run) -> Iterator[Finding]:
    """Gradients are cleared after backward and before the optimizer steps.

    ## What it detects
    In one loop and without conditions: `backward`, then `zero_grad` of the same optimizer, then its
    `step`, with no other `backward` in between. Or a step that waits for several batches, while
    gradients are cleared for each of them.

    ## Why it matters
    The optimizer steps on zeros (or on nothing): the weights do not move, apart from momentum and
    weight decay, and no error is raised. Where the step waits, all batches but the last are
    computed for nothing.

    ## What to do
    Move `zero_grad()` before `backward()`, or after `step()`; where gradients accumulate, under the
    condition of the step.

    ## When it is wrong
    With several optimizers the cleared one may not be the stepped one; only the same name counts.
    Gradients that are written by hand in between (`p.grad = …`), or may be, are left alone.
    A number of batches that is 1 in the end does no harm; where it is out of sight, this is a hint.
    """
    for loop in training_loops(project_of(run)):
        for cleared, step in _cleared_then_stepped(loop):
            if _is_given_gradients(project_of(run), loop, cleared, step):
                continue
            yield Finding(
                claim=f"Gradients are wiped by {cleared.target}.zero_grad() before the step",
                strength=Strength.STRONG,
                evidence=(
                    cite_source(cleared.module.path, cleared.line, "gradients are cleared here"),
                    cite_source(step.module.path, step.line, "and the step comes only here"),
                ),
                shows="gradients-cleared-before-step",
                is_symptom=True,
                location=cleared.location,
                patch=_patch(cleared, step),
            )
            break
        else:
            yield from _thrown_away(project_of(run), loop)


def _is_given_gradients(project: Project, loop: TrainingLoop, cleared: Act, step: Act) -> bool:
    """Tell whether gradients may be set by hand between the two, or computed in the step."""
    if step.do is Do.STEP and isinstance(step.node, ast.Call) and _arguments(step.node):
        return True  # a closure
    if cleared.function is not step.function or cleared.module is not step.module:
        scopes = [a.function or a.module.tree for a in (cleared, step)]
        return any(_sets_gradients(n) for s in scopes for n in ast.walk(s))
    models = {a.target for a in loop.does(Do.FORWARD)} | {step.target}
    scope = cleared.function or cleared.module.tree
    between = [n for n in ast.walk(scope) if cleared.line < getattr(n, "lineno", 0) < step.line]
    return any(
        _sets_gradients(n) or _may_set_gradients(project, cleared.module, n, models)
        for n in between
    )


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)]


def _sets_gradients(node: ast.AST) -> bool:
    """`p.grad = g`, `p.grad += g`, `p.grad.copy_(g)`, `setattr(p, "grad", g)`."""
    if isinstance(node, ast.Assign):
        is_none = isinstance(node.value, ast.Constant) and node.value.value is None
        return not is_none and any(_is_gradient(t) for t in node.targets)
    if isinstance(node, ast.AugAssign):
        return _is_gradient(node.target)
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr.endswith("_"):
        return func.attr != "zero_" and any(_is_gradient(n) for n in ast.walk(func.value))
    is_named = isinstance(node, ast.Call) and "grad" in {literal(a) for a in node.args[1:2]}
    return is_named and isinstance(func, ast.Name) and func.id == "setattr"


def _is_gradient(node: ast.AST) -> bool:
    whole = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(whole, ast.Attribute) and whole.attr == "grad"


def _may_set_gradients(project: Project, module: Module, node: ast.AST, models: set[str]) -> bool:
    """Tell whether a call out of sight, or of the user's own, may write gradients."""
    name = (module.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
    last = name.rsplit(".", 1)[-1]
    if not isinstance(node, ast.Call) or last in CLIPS or last == "zero_grad":
        return False
    own = project.find_function(module, name)
    if own is not None and any(_sets_gradients(n) for n in ast.walk(own[1])):
        return True
    if name.startswith("torch.") and "autograd" not in name:
        return False
    keys = {key_of(n) for a in _arguments(node) for n in ast.walk(a)}
    is_given = bool(keys & models) and last not in ("print", "zip", "len", "list")
    return "grad" in last.lower() or is_given


def _thrown_away(project: Project, loop: TrainingLoop) -> Iterator[Finding]:
    """A step every n batches, and gradients that are cleared at every one."""
    steps, backwards = loop.does(*STEPS), loop.does(Do.BACKWARD)
    period = _period(steps[0]) if steps else None
    if period is None or len(backwards) != 1 or backwards[0].guards:
        return
    if any(s.guards != steps[0].guards or s.loops != backwards[0].loops for s in steps):
        return
    names = {s.target for s in steps}
    plain = [a for a in loop.does(Do.ZERO_GRAD) if not a.guards and a.loops == steps[0].loops]
    number = _number(project, period)
    if number == 1 or not plain or not {a.target for a in plain} <= names:
        return
    if any(_sets_gradients(n) for n in ast.walk(backwards[0].loops[-1])):
        return  # kept by hand
    cause, often = "gradients-cleared-before-step", ast.unparse(period)
    yield Finding(
        claim=f"The step waits for {often} batches, and gradients are cleared at every one",
        strength=Strength.STRONG if number else Strength.MODERATE,
        evidence=(
            plain[0].module.cite(plain[0].node, "gradients are cleared here, for every batch"),
            steps[0].module.cite(steps[0].node, f"and the step comes every {often} batches"),
        ),
        suggests={} if number else {cause: Strength.STRONG},
        shows=cause if number else None,
        location=plain[0].location,
    )


def _period(step: Act) -> ast.expr | None:
    """The n of a step that runs where ``… % n == 0`` holds."""
    for test in step.guards:
        for node in ast.walk(test):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                return node.right
    return None


def _number(project: Project, period: ast.expr) -> int | None:
    """How many batches that is, where the source says so in one way."""
    value = literal(period)
    if isinstance(value, int):
        return value
    name = (key_of(period) or "").rsplit(".", 1)[-1]
    found = {v for m in project.modules for v in _given(m, name)}
    return found.pop() if len(found) == 1 else None


def _given(module: Module, name: str) -> Iterator[int]:
    """The numbers that a file gives to a name: a variable, an argument, a default."""
    for node in ast.walk(module.tree):
        pairs: list[tuple[str, ast.AST | None]] = []
        if isinstance(node, ast.keyword):
            pairs = [(node.arg or "", node.value)]
        elif isinstance(node, ast.Assign):
            pairs = [((key_of(t) or "").rsplit(".", 1)[-1], node.value) for t in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [((key_of(node.target) or "").rsplit(".", 1)[-1], node.value)]
        elif isinstance(node, ast.arguments):
            with_default = node.args[len(node.args) - len(node.defaults) :]
            pairs = [(a.arg, d) for a, d in zip(with_default, node.defaults, strict=True)]
        elif isinstance(node, ast.Call) and node.args:
            flag = literal(node.args[0])
            if isinstance(flag, str) and flag.lstrip("-").replace("-", "_") == name:
                pairs = [(name, argument(node, "default"))]
        for key, value in pairs:
            number = literal(value)
            if key == name and isinstance(number, int):
                yield number


def _cleared_then_stepped(loop: TrainingLoop) -> Iterator[tuple[Act, Act]]:
    plain = [a for a in loop.acts if not a.guards]
    for i, cleared in enumerate(plain):
        if cleared.do is not Do.ZERO_GRAD or not cleared.target:
            continue
        before = [a for a in plain[:i] if a.loops == cleared.loops]
        after = [a for a in plain[i + 1 :] if a.loops == cleared.loops]
        computed = [a for a in before if a.do is Do.BACKWARD]
        stepped_since = computed and any(
            a.do in STEPS for a in before[before.index(computed[-1]) :]
        )
        following = next((a for a in after if a.do in (*STEPS, Do.BACKWARD)), None)
        if not computed or stepped_since or following is None or following.do is Do.BACKWARD:
            continue
        if following.target == cleared.target or following.do is Do.SCALER_STEP:
            yield cleared, following


def _patch(cleared: Act, step: Act) -> str | None:
    """Move the statement behind the step."""
    if cleared.statement is None or step.statement is None or cleared.module is not step.module:
        return None
    text = f"{cleared.target}.zero_grad()"
    module = cleared.module
    return diff(
        module,
        removing(module, cleared.statement),
        inserting_after(module, step.statement, text),
    )


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    loss = criterion(model(data), target)
{order}
"""


def _loop(*order: str) -> Run:
    body = "\n".join(f"    {line}" for line in order)
    return make_run(sources={"train.py": _LOOP.format(order=body)})


def _waiting(count: int, *order: str) -> Run:
    text = _LOOP.replace("for data, target in", f"every = {count}\nfor i, (data, target) in")
    body = "\n".join(f"    {line}" for line in order)
    return make_run(sources={"train.py": text.format(order=body)})


_WAITS = ("if (i + 1) % every == 0:", "    optimizer.step()")

FIRES = {
    "between": _loop("loss.backward()", "optimizer.zero_grad()", "optimizer.step()"),
    "between, and clipped": _loop(
        "loss.backward()",
        "optimizer.zero_grad()",
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "optimizer.step()",
    ),
    "accumulated in vain": _waiting(4, "optimizer.zero_grad()", "loss.backward()", *_WAITS),
}

SILENT = {
    "before": _loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()"),
    "after": _loop("loss.backward()", "optimizer.step()", "optimizer.zero_grad()"),
    "near miss: cleared with the step": _waiting(
        4, "loss.backward()", *_WAITS, "    optimizer.zero_grad()"
    ),
    "near miss: every batch is a step": _waiting(
        1, "optimizer.zero_grad()", "loss.backward()", *_WAITS
    ),
    "near miss: another optimizer is cleared": _loop(
        "loss.backward()", "other.zero_grad()", "optimizer.step()"
    ),
    "near miss: gradients are set by hand": _loop(
        "loss.backward()",
        "gradients = [p.grad.clone() for p in fast.parameters()]",
        "optimizer.zero_grad()",
        "for p, g in zip(model.parameters(), gradients):",
        "    p.grad = g",
        "optimizer.step()",
    ),
    "near miss: gradients are set out of sight": _loop(
        "loss.backward()", "optimizer.zero_grad()", "share(model)", "optimizer.step()"
    ),
    "near miss: computed in the step": _loop(
        "loss.backward()", "optimizer.zero_grad()", "optimizer.step(closure)"
    ),
    "near miss: summed by hand over the batches": _waiting(
        4,
        "optimizer.zero_grad()",
        "loss.backward()",
        "sums = [s + p.grad for s, p in zip(sums, model.parameters())]",
        "for p, s in zip(model.parameters(), sums):",
        "    p.grad = s.clone()",
        *_WAITS,
    ),
    "near miss: two backwards": _loop(
        "loss.backward()",
        "optimizer.zero_grad()",
        "(loss * 2).backward()",
        "optimizer.step()",
    ),
}
