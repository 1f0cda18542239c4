"""A checkpoint is written in every training step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from traindx.evidence import Finding, Strength, cite
from traindx.examples import recorded
from traindx.model import Run, Series, Source
from traindx.recording import Model, Parameter, Process
from traindx.registry import detector
from traindx.runtime.observations import processes_of
from traindx.source import project_of
from traindx.source.acts import Do
from traindx.source.loops import training_loops
from traindx.source.module import Module, literal

SAVES = frozenset({"save_checkpoint", "save_pretrained", "save_state", "save_file", "save_model"})
CALL_S = 5e-4  # to pickle, zip and write even a small file; more on a network
BYTES_PER_S = 1e9  # of a fast disk
NOTICED = 0.05  # of a step: the share that is spent on saving at the least
ENOUGH = 30  # steps: a run that saves a dozen times saves seldom


@detector(needs=("source", "recording", "time/*"), suggests=("checkpoint-overhead",))
def check(run: Run) -> Iterator[Finding]:
    """The loop over batches saves a checkpoint without a condition, and steps are short.

    ## What it detects
    `torch.save` or its kin in the innermost loop that steps the optimizer, under no `if`, where the
    recorded steps are so short that writing a file of the model's size takes a twentieth of them
    even on a fast disk.

    ## Why it matters
    Training stands still while the file is written, and nobody goes back to all those states.

    ## What to do
    Save every few minutes or once per epoch; keep the last few and the best.

    ## When it is wrong
    A loop whose step is a whole epoch, or takes seconds, may well save each time; the time per step
    tells. How long the saving took is not recorded, so the least that it can take is compared.
    """
    taken = run.get("time/step")
    times = taken.finite() if taken is not None else None
    if times is None or len(times) < ENOUGH:
        return
    step_s = float(np.median(times.values))
    size = _bytes(run)
    for module, call, count in _saves(run):
        share = count * (CALL_S + size / BYTES_PER_S) / step_s
        if share < NOTICED:
            continue
        yield _finding(module, call, times, count, step_s, share)
        return


def _finding(
    module: Module, call: ast.Call, times: Series, count: int, step_s: float, share: float
) -> Finding:
    often = "a checkpoint" if count == 1 else f"{count} checkpoints"
    return Finding(
        claim=f"Every step saves {often}, and a step takes {1000 * step_s:.3g} ms",
        strength=Strength.STRONG,
        evidence=(
            module.cite(call, f"`{ast.unparse(call.func)}` runs in every step"),
            cite(
                times,
                f"a step takes {1000 * step_s:.3g} ms; to save takes {min(share, 1):.0%} of it or "
                "more, even on a fast disk",
                0,
                -1,
            ),
        ),
        suggests={"checkpoint-overhead": Strength.STRONG},
        is_symptom=True,
        location=module.location(call),
    )


def _bytes(run: Run) -> float:
    shapes = {(m.id, p.name): p.shape for q in processes_of(run) for m in q.models
              for p in m.parameters}  # fmt: skip
    return 4.0 * sum(prod(s) for s in shapes.values())


def _saves(run: Run) -> Iterator[tuple[Module, ast.Call, int]]:
    """Calls that save in every step, and how many times a step they do."""
    for loop in training_loops(project_of(run)):
        step = loop.first(Do.STEP, Do.SCALER_STEP)
        if step is None or not step.loops or step.guards:
            continue
        module, inner = step.module, step.loops[-1]
        for call, name in module.calls(inner):
            last = name.rsplit(".", 1)[-1]
            if name != "torch.save" and last not in SAVES:
                continue
            above = list(module.enclosing(call))
            between = above[: above.index(inner)] if inner in above else None
            count = _times(between) if between is not None else 0
            if count:
                yield module, call, count


def _times(between: list[ast.AST]) -> int:
    """How often a call runs per round of the loop around it; 0 where that is not certain."""
    count = 1
    for node in between:
        if isinstance(node, ast.For):
            count *= _rounds(node)
        elif not isinstance(node, (ast.With, ast.Expr, ast.Assign)):
            return 0
    return count


def _rounds(loop: ast.For) -> int:
    call = loop.iter
    is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    if not is_range or not isinstance(call, ast.Call) or ast.unparse(call.func) != "range":
        return 0
    end = literal(call.args[0]) if len(call.args) == 1 else None
    return end if isinstance(end, int) and end > 0 else 0


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(data), target)
    loss.backward()
    optimizer.step()
    {save}
{after}
"""
_SAVE = 'torch.save(model.state_dict(), "last.pt")'


def _run(save: str, step_s: float, after: str = "") -> Run:
    model = Model(1, type="Net", parameters=(Parameter("0.weight", (64, 64)),))
    run = recorded(Process(models=(model,)), time_step=np.full(60, step_s))
    return replace(run, sources=(Source("train.py", _LOOP.format(save=save, after=after)),))


FIRES = {
    "every step": _run(_SAVE, 0.005),
    "several times a step": _run(f"for i in range(4):\n        {_SAVE}", 0.02),
}

SILENT = {
    "near miss: every hundredth step": _run(f"if step % 100 == 0:\n        {_SAVE}", 0.005),
    "near miss: steps of a second": _run(_SAVE, 1.0),
    "near miss: after the loop": _run("pass", 0.005, _SAVE),
}
