"""The model is still in evaluation mode while it trains."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.models import changes_with_mode, layers_of
from traindx.source.module import Module, key_of
from traindx.source.patches import diff, inserting_before
from traindx.source.phases import Entry, entries, is_same_model, is_without_gradients, mode_before
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

MODES = (Do.TRAIN_MODE, Do.EVAL_MODE)
LEAVES = (ast.Break, ast.Return, ast.Raise)


@detector(needs=("source",), suggests=("training-in-eval-mode",))
def check(run: Run) -> Iterator[Finding]:
    """The model is put into evaluation mode and never back before it trains.

    ## What it detects
    A model whose parameters an optimizer holds and that runs in a training step after `eval()`:
    called before the loop, or at the end of validation without a `train()` before the next epoch,
    or the next batch where validation runs every so many batches.

    ## Why it matters
    Dropout is off and batch norm uses (and never updates) its running statistics. The first epoch
    trains as meant, all later ones do not; results get worse without any error.

    ## What to do
    Call `model.train()` at the top of every epoch, before the loop over batches.

    ## When it is wrong
    Fine-tuning with frozen statistics calls `eval()` on purpose, usually on a part of the model;
    parts are not looked at, and a model without dropout and batch norm is left alone.
    """
    project = project_of(run)
    seen: set[ast.AST] = set()
    for entry in entries(project):
        for forward in _training_forwards(project, entry):
            found = _left_in_eval(entry, forward)
            if found is None or found[0].node in seen:
                continue
            eval_act, is_in_loop = found
            layers = _layers(project, forward)
            if layers == [] or (layers is None and not is_in_loop):
                continue
            seen.add(eval_act.node)
            yield _finding(forward, eval_act, layers or [])
    for loop in training_loops(project):
        for backward, eval_act in _handed_on_in_eval(loop):
            if eval_act.node not in seen:
                seen.add(eval_act.node)
                yield _finding(replace(backward, target=eval_act.target), eval_act, [])


def _handed_on_in_eval(loop: TrainingLoop) -> Iterator[tuple[Act, Act]]:
    """A model that validates among the batches, where its training pass is out of sight.

    Its loss is then computed by a function that gets the model: `loss = estimate(model, x)`.
    """
    for backward in loop.does(Do.BACKWARD):
        batches = backward.loops[-1]
        for act in loop.does(Do.EVAL_MODE):
            model = act.target
            trained = {a.target for a in loop.does(Do.TRAIN_MODE)}
            if act.loops[-1:] != (batches,) or model in trained or act.line < backward.line:
                continue
            scope: ast.AST = act.function or act.module.tree
            is_trained = f"{model}.parameters()" in ast.unparse(scope)
            if not is_trained or _leaves(act.module, act) or _restores(act):
                continue
            if _makes_the_loss(act.module, batches, backward, model):
                yield backward, act


def _makes_the_loss(module: Module, batches: ast.AST, backward: Act, model: str) -> bool:
    """Tell whether what `backward` is called on comes from a call that gets the model."""
    loss = None if backward.subject is None else key_of(backward.subject)
    for node in ast.walk(batches):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        given = [*node.value.args, *(k.value for k in node.value.keywords)]
        if any(key_of(t) == loss for t in node.targets) and any(key_of(g) == model for g in given):
            return True
    return False


def _finding(forward: Act, eval_act: Act, layers: list[str]) -> Finding:
    touched = f" ({', '.join(layers)})" if layers else ""
    return Finding(
        claim=f"`{forward.target}` trains after `{eval_act.target}.eval()`{touched}",
        strength=Strength.STRONG,
        evidence=(
            eval_act.module.cite(eval_act.node, f"{eval_act.target}.eval() is called here"),
            forward.module.cite(forward.node, "and no train() before this training step"),
        ),
        shows="training-in-eval-mode",
        is_symptom=True,
        location=eval_act.location,
        # where validation interrupts the passes over batches, a line before them changes nothing
        patch=None if forward.loops[-1] in eval_act.loops else _patch(forward),
    )


def _training_forwards(project: Project, entry: Entry) -> Iterator[Act]:
    """The forward passes whose model an optimizer of the same loop trains."""
    uses = (a for a in entry.acts if a.do in (Do.STEP, Do.ZERO_GRAD) and a.loops)
    steps = [a for a in uses if a.value.call is not None]
    for forward in entry.acts:
        if forward.do is not Do.FORWARD or not forward.loops or is_without_gradients(forward):
            continue
        same = [s for s in steps if s.loops[-1] is forward.loops[-1]]
        if any(_holds(project, step, forward) for step in same):
            yield forward


def _holds(project: Project, step: Act, forward: Act) -> bool:
    made = step.value.call
    if made is None or step.value.kind is not Kind.OPTIMIZER:
        return False
    home = next((m for m in (step.module, *project.modules) if made in m.parents), step.module)
    for node in ast.walk(made):
        if isinstance(node, ast.Attribute) and node.attr == "parameters":
            at: ast.AST = home.function_of(made) or home.tree
            owner = value_of(project, home, at, node.value)
            if owner.call is not None and forward.value.call is not None:
                if owner.call is forward.value.call:
                    return True
            elif key_of(node.value) == forward.target:
                return True
    return False


def _left_in_eval(entry: Entry, forward: Act) -> tuple[Act, bool] | None:
    """The `eval()` that the forward pass runs after, and whether it is in the same loop."""
    before = mode_before(entry, forward)
    if before is not None and before.do is Do.EVAL_MODE and not before.guards:
        return before, bool(set(before.loops) & set(forward.loops))
    position = entry.acts.index(forward)
    for loop in forward.loops:
        modes = [
            (i, a)
            for i, a in enumerate(entry.acts)
            if a.do in MODES and loop in a.loops and is_same_model(a, forward)
        ]
        # back in training mode before it trains, unless this loop never goes back
        is_left = all(a.do is Do.EVAL_MODE for _, a in modes)
        if not modes or (not is_left and any(i < position for i, _ in modes)):
            continue
        last = modes[-1][1]
        if last.do is Do.EVAL_MODE and not _leaves(last.module, last) and not _restores(last):
            return last, True
    return None


def _leaves(module: Module, act: Act) -> bool:
    """Tell whether the loop ends with the block in which the mode is changed."""
    block = next((n for n in module.enclosing(act.node) if isinstance(n, ast.If)), None)
    return block is not None and any(isinstance(n, LEAVES) for n in block.body)


def _restores(act: Act) -> bool:
    """Tell whether the function that calls `eval()` also sets a mode that it remembers."""
    scope: ast.AST = act.function or act.module.tree
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_late = node.func.attr == "train" and bool(node.args or node.keywords)
            if is_late and not (node.args and isinstance(node.args[0], ast.Constant)):
                return True
    return False


def _layers(project: Project, forward: Act) -> list[str] | None:
    """The layers that mind; None where the model's source is out of sight."""
    made = forward.value.call
    if made is None or not forward.value.is_certain:
        return None
    return changes_with_mode(layers_of(project, forward.module, made))


def _patch(forward: Act) -> str | None:
    loop = forward.loops[-1]
    if not isinstance(loop, ast.For) or loop not in forward.module.parents:
        return None
    return diff(forward.module, inserting_before(forward.module, loop, f"{forward.target}.train()"))


_PROGRAM = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.{layer}, nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for epoch in range(3):
    {top}
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    {validation}
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
"""


def _program(
    before: str = "", top: str = "pass", validation: str = "model.eval()", layer: str = "Dropout()"
) -> Run:
    text = _PROGRAM.format(before=before, top=top, validation=validation, layer=layer)
    return make_run(sources={"train.py": text})


_HIDDEN = """
import torch
from losses import score_matching

def run(net, batches, test_batch):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step, batch in enumerate(batches):
        {top}
        loss = score_matching(net, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            net.eval()
            with torch.no_grad():
                test_loss = score_matching(net, test_batch)
            {after}
"""


def _hidden(top: str = "pass", after: str = "pass") -> Run:
    return make_run(sources={"run.py": _HIDDEN.format(top=top, after=after)})


FIRES = {
    "validation among the batches, the pass out of sight": _hidden(),
    "never back after validation": _program(),
    "train once before all epochs": _program(before="model.train()"),
    "eval before the loop": _program(before="model.eval()", validation="pass"),
}

_EVERY = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def validate():
    model.eval()
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
{back}
for epoch in range(3):
    model.train()
    for i, (data, target) in enumerate(train_loader):
        if i % 100 == 0:
            validate()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
"""
FIRES["every so many batches"] = make_run(sources={"train.py": _EVERY.format(back="")})

SILENT = {
    "near miss: back in training mode for every batch": _hidden(top="net.train()"),
    "near miss: the last validation ends the run": _hidden(after="return"),
    "every so many batches, and back": make_run(
        sources={"train.py": _EVERY.format(back="    model.train()")}
    ),
    "train at the top of the epoch": _program(top="model.train()"),
    "near miss: nothing that minds the mode": _program(layer="ReLU()"),
    "near miss: another model is evaluated": _program(before="teacher.eval()", validation="pass"),
}
