"""A backward pass that stands behind the loop over batches instead of in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import key_of
from traindx.source.phases import is_without_gradients
from traindx.source.project import Project

LOADER = re.compile(r"load(?:er)?s?\w*$|(?:^|_)dl$|batches$", re.IGNORECASE)
GATHERS = (
    "append", "appendleft", "extend", "insert", "add", "update", "cat", "push", "put", "store",
)  # fmt: skip
DEEP = 4  # assignments between the output of the model and the loss


@detector(needs=("source",), suggests=("missing-backward",))
def check(run: Run) -> Iterator[Finding]:
    """The model runs on every batch, and only the last one of an epoch is learnt from.

    ## What it detects
    A loop over a data loader, within a loop over epochs, that runs the model with gradients and
    keeps its output in a name that the next batch overwrites, while `backward` is called behind
    that loop on what is left in the name.

    ## Why it matters
    It is an indentation gone astray: one step per epoch, from one batch. The loss falls as slowly
    as if the data had a single batch.

    ## What to do
    Move the loss, `backward` and the step into the loop over batches.

    ## When it is wrong
    Outputs or losses that are collected, summed up or carried on over the batches are learnt from
    together; these, and loops over time steps, are left alone.
    """
    project = project_of(run)
    for loop in training_loops(project):
        for backward in loop.does(Do.BACKWARD):
            forward = _overwritten(project, loop, backward)
            if forward is None:
                continue
            yield Finding(
                claim="Backward runs behind the loop over batches: only the last one is learnt",
                strength=Strength.STRONG,
                evidence=(
                    forward.module.cite(forward.node, "the model runs on every batch here"),
                    backward.module.cite(backward.node, "and backward only after the last one"),
                ),
                shows="missing-backward",
                is_symptom=True,
                location=backward.location,
            )
            break


def _overwritten(project: Project, loop: TrainingLoop, backward: Act) -> Act | None:
    """The pass over batches whose output is lost to all but the `backward` behind them."""
    for forward in loop.does(Do.FORWARD):
        batches = forward.loops[-1] if len(forward.loops) == len(backward.loops) + 1 else None
        is_behind = isinstance(batches, ast.For) and backward.line > (batches.end_lineno or 0)
        if not isinstance(batches, ast.For) or not is_behind or is_without_gradients(forward):
            continue
        if backward.loops != forward.loops[:-1] or forward.module is not backward.module:
            continue
        over = [k for n in ast.walk(batches.iter) if (k := key_of(n))]
        if not any(LOADER.search(k) for k in over) or _learns(loop, batches):
            continue
        if _last_of(batches) & _made_of(project, backward) and not _gathers(batches):
            return forward
    return None


def _learns(loop: TrainingLoop, batches: ast.For) -> bool:
    return any(batches in a.loops for a in loop.does(Do.BACKWARD, Do.STEP, Do.GRAD))


def _last_of(batches: ast.For) -> set[str]:
    """The names that a pass over the batches overwrites."""
    bound = (n for s in batches.body for n in ast.walk(s) if isinstance(n, ast.Assign))
    return {k for n in bound for t in n.targets for p in ast.walk(t) if (k := key_of(p))}


def _gathers(batches: ast.For) -> bool:
    """Tell whether anything is summed up or collected over the batches, or only one is wanted."""
    if _carries(batches):
        return True
    for node in (n for s in batches.body for n in ast.walk(s)):
        if isinstance(node, (ast.AugAssign, ast.Break)):
            return True
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr in GATHERS:
            return True
    return False


def _carries(batches: ast.For) -> bool:
    """Tell whether a name goes from batch to batch: `loss = loss + …`, `outputs[i] = …`."""
    fresh = {n.id for n in ast.walk(batches.target) if isinstance(n, ast.Name)}
    bound = (n for s in batches.body for n in ast.walk(s) if isinstance(n, ast.Assign))
    for node in sorted(bound, key=lambda n: n.lineno):
        parts = [p for t in node.targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
        read = {key_of(n) for n in ast.walk(node.value)}
        keys = {k for p in parts if (k := key_of(p))}
        if keys & read - fresh or any(isinstance(p, ast.Subscript) for p in parts):
            return True
        fresh |= keys
    return False


def _made_of(project: Project, backward: Act) -> set[str]:
    """The names that what `backward` is called on was computed from, behind the batches."""
    scope: ast.AST = backward.function or backward.module.tree
    outer = backward.loops[-1] if backward.loops else scope
    block = getattr(outer, "body", [])
    own = [s for s in block if isinstance(s, ast.Assign) and s.lineno < backward.line]
    names = {key_of(backward.subject) if backward.subject is not None else None}
    for _ in range(DEEP):
        for statement in own:
            if any(key_of(t) in names for t in statement.targets):
                names |= {key_of(n) for n in ast.walk(statement.value)}
    return {n for n in names if n}


_EPOCHS = """
import torch
from torch import nn

model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(9):
    model.train()
    for x, y in train_loader:
        x = x.cuda()
        output = model(x)
        {inside}
    loss = criterion({behind}, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _epochs(inside: str = "pass", behind: str = "output") -> Run:
    return make_run(sources={"train.py": _EPOCHS.format(inside=inside, behind=behind)})


FIRES = {"only the last output": _epochs()}

_STEPS = _EPOCHS.replace("for x, y in train_loader:", "for x in sequence.unbind(1):")

SILENT = {
    "near miss: outputs are collected": _epochs("outputs.append(output)", "torch.cat(outputs)"),
    "near miss: a sum over the batches": _epochs(
        "total = total + criterion(output, y)", "total + output"
    ),
    "near miss: a state that is carried on": _epochs("state = mix(output, state)", "state"),
    "near miss: outputs are kept by their place": _epochs("kept[i] = output", "kept"),
    "near miss: one batch is enough": _epochs("break"),
    "near miss: time steps": make_run(
        sources={"train.py": _STEPS.format(inside="pass", behind="output")}
    ),
    "near miss: another loss behind the batches": _epochs(
        "criterion(output, y).backward()", "model(probe)"
    ),
}
