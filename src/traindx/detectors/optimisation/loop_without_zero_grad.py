"""A training loop that never clears its gradients."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import key_of
from traindx.source.patches import diff, inserting_before
from traindx.source.values import Kind

CLEARS = re.compile(r"zero_grad|grad\s*=\s*None|grad\.zero_|clear_grad|set_to_none")
# functions out of sight whose names say that they clear: `reset_gradients(model)`
CLEARING = re.compile(
    r"^(zero|clear|reset|clean|drop)(_all)?(_?grad(s|ient|ients)?)?$|grads?_to_(zero|none)$"
)
LIMITING = frozenset({"clamp_", "clip_", "div_", "nan_to_num_"})  # these leave old gradients in
SOUND = re.compile(r"isfinite|isnan|isinf")  # a step that broken gradients are kept from


@detector(needs=("source",), suggests=("missing-zero-grad",))
def check(run: Run) -> Iterator[Finding]:
    """A training loop steps its optimizer on gradients that pile up from batch to batch.

    ## What it detects
    A loop in which `backward` and the step of an optimizer run for every batch and no call
    clears the gradients there: not at all, or only once per epoch. An optimizer that is handed in
    from out of sight counts where no gradient is cleared anywhere in the code.

    ## Why it matters
    PyTorch adds to `.grad`. Every step then follows the sum of all batches so far: the effective
    learning rate grows with every step, and training becomes noisy or diverges.

    ## What to do
    Call `optimizer.zero_grad()` once per step, before `backward()` or after `step()`.

    ## When it is wrong
    Accumulation on purpose clears the gradients after every few batches; an optimizer that is made
    anew for every batch starts clean. Both are left alone, as is a step with a closure, and a loop
    that writes gradients by hand in any other way than to limit them.
    """
    project = project_of(run)
    is_cleared = any(CLEARS.search(m.text) for m in project.training_modules)
    for loop in training_loops(project):
        step = _plain_step(loop, is_cleared)
        backward = loop.first(Do.BACKWARD)
        if step is None or backward is None or loop.does(Do.GRAD, Do.MANUAL_UPDATE):
            continue
        inner = step.loops
        if backward.loops != inner or _clears_in(loop, inner) or _is_out_of_sight(loop, step):
            continue
        if any(_may_clear(node) for text in _texts(loop, inner[-1]) for node in ast.walk(text)):
            continue
        cleared = loop.first(Do.ZERO_GRAD)
        how = "only outside the loop over batches" if cleared else "nowhere in the loop"
        evidence = [
            cite_source(step.module.path, step.line, f"{step.target}.step() runs per batch")
        ]
        if cleared:
            evidence.append(cite_source(cleared.module.path, cleared.line, "cleared only here"))
        yield Finding(
            claim=f"Gradients pile up: {step.target}.zero_grad() is called {how}",
            strength=Strength.STRONG,
            evidence=tuple(evidence),
            shows="missing-zero-grad",
            is_symptom=True,
            location=backward.location,
            patch=_patch(backward, step.target),
        )


def _plain_step(loop: TrainingLoop, is_cleared: bool) -> Act | None:
    """The step of an optimizer, without a closure and on no condition but sound gradients."""
    for act in loop.does(Do.STEP):
        is_known = act.value.kind is Kind.OPTIMIZER and (
            act.value.is_certain or (not is_cleared and _is_of_torch(act))
        )
        has_closure = isinstance(act.node, ast.Call) and bool(act.node.args or act.node.keywords)
        is_plain = all(SOUND.search(ast.unparse(g)) for g in act.guards)
        if is_known and is_plain and not has_closure:
            return act
    return None


def _is_of_torch(act: Act) -> bool:
    """Tell whether an optimizer of unknown make is torch's: no class of the project's own."""
    is_own = any("optim" in name.lower() for name in act.module.classes)
    return "torch" in act.module.roots and not is_own


def _clears_in(loop: TrainingLoop, inner: tuple[ast.AST, ...]) -> bool:
    return any(len(a.loops) >= len(inner) for a in loop.does(Do.ZERO_GRAD))


def _texts(loop: TrainingLoop, inner: ast.AST) -> list[ast.AST]:
    """The loop over batches and the project's own functions that it runs."""
    called = {a.function for a in loop.acts if a.function is not loop.function and inner in a.loops}
    is_inside = {f: inner in set(ast.walk(f)) for f in called if f is not None}
    return [inner, *(f for f, is_around in is_inside.items() if not is_around)]


def _may_clear(node: ast.AST) -> bool:
    """Tell whether code writes gradients by hand, or calls what by its name clears them."""
    if isinstance(node, ast.Attribute) and node.attr == "grad":
        return isinstance(node.ctx, (ast.Store, ast.Del))
    if isinstance(node, ast.AugAssign):
        return "attr='grad'" in ast.dump(node.target)
    if not isinstance(node, ast.Call):
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else key_of(node.func) or ""
    if called.endswith("_") and called not in LIMITING and isinstance(node.func, ast.Attribute):
        return called.startswith("_foreach_") or _is_gradient(node.func.value)
    is_set = called == "setattr" and "'grad'" in ast.unparse(node)
    return is_set or bool(node.args and CLEARING.search(called))


def _is_gradient(node: ast.expr) -> bool:
    """Tell whether a tensor is a gradient: `p.grad`, `p.grad.data`."""
    while isinstance(node, ast.Attribute) and node.attr != "grad":
        node = node.value
    return isinstance(node, ast.Attribute)


def _is_out_of_sight(loop: TrainingLoop, step: Act) -> bool:
    """Tell whether something we cannot see may clear: the optimizer is made or passed on inside."""
    made = step.value.call
    inner = step.loops[-1]
    if made is not None and any(node is made for node in ast.walk(inner)):
        return True
    for node in ast.walk(inner):
        if isinstance(node, ast.Call):
            given = {ast.unparse(a) for a in [*node.args, *(k.value for k in node.keywords)]}
            if step.target in given:
                return True
    return False


def _patch(backward: Act, optimizer: str) -> str | None:
    statement = backward.statement
    if statement is None:
        return None
    edit = inserting_before(backward.module, statement, f"{optimizer}.zero_grad()")
    return diff(backward.module, edit)


_LOOP = """
import torch
from torch import nn

model = nn.Linear(784, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(10):
{per_epoch}
    for i, (data, target) in enumerate(train_loader):
        loss = nn.functional.cross_entropy(model(data), target)
        loss.backward()
{per_batch}
"""


def _loop(per_batch: str, per_epoch: str = "    model.train()") -> Run:
    return make_run(sources={"train.py": _LOOP.format(per_batch=per_batch, per_epoch=per_epoch)})


_STEP = "        optimizer.step()"
_ACCUMULATED = """
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

_HANDED = """
import torch
from torch.nn.utils import clip_grad_norm_

def train(model, optimizer, criterion, loader, device):
    model.train()
    for data, target in loader:
        loss = criterion(model(data.to(device)), target.to(device))
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), 5.0)
        if torch.isfinite(norm):
            optimizer.step()
{more}
"""
_ELSEWHERE = """
    optimizer.zero_grad()
"""
_OWN = """
class ScheduledOptim:
    def step(self):
        self.inner.step()
"""


def _handed(more: str = "") -> Run:
    return make_run(sources={"train.py": _HANDED.format(more=more)})


FIRES = {
    "never cleared": _loop(_STEP),
    "handed in, stepped on finite gradients": _handed(),
    "limited by hand, never cleared": _loop(
        "        for p in model.parameters():\n            p.grad.clamp_(-1, 1)\n" + _STEP
    ),
    "cleared once per epoch": _loop(_STEP, "    optimizer.zero_grad()"),
}

SILENT = {
    "near miss: handed in and cleared somewhere": _handed(_ELSEWHERE),
    "near miss: an optimizer of the project's own": _handed(_OWN),
    "cleared after the step": _loop(_STEP + "\n        optimizer.zero_grad(set_to_none=True)"),
    "cleared through the model": _loop(_STEP + "\n        model.zero_grad()"),
    "near miss: cleared all at once": _loop(
        _STEP + "\n        torch._foreach_zero_([p.grad for p in model.parameters()])"
    ),
    "near miss: cleared by a multiplication": _loop(
        _STEP + "\n        for p in model.parameters():\n            p.grad.mul_(0)"
    ),
    "near miss: cleared by a function out of sight": _loop(_STEP + "\n        reset_grads(model)"),
    "near miss: accumulation on purpose": _loop(_ACCUMULATED),
    "near miss: cleared by hand": _loop(
        _STEP + "\n        for p in model.parameters():\n            p.grad = None"
    ),
}
