"""The gradient scaler steps again before it was updated."""

from traindx.analysis.program.training.claims import (
    cite,
    finding,
    insert_after,
    receiver_of,
    source_text,
)
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.scaling import MissedUpdate, missed_updates
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("missing-scaler-update",))
def check(run: Run) -> Findings:
    """A training loop steps through a gradient scaler without an update for every step.

    ## What it detects
    A loop with `scaler.scale(loss).backward()` and `scaler.step(optimizer)`, where nothing in the
    program calls `update()` of that scaler, or only after the loop or in some of its turns.

    ## Why it matters
    The scaler still thinks that it is within the same step: a second `unscale_` or `step` raises,
    or the scale never adapts and after the first overflow every step is skipped.

    ## What to do
    Call `scaler.update()` once per iteration, after the last `scaler.step`.

    ## When it is wrong
    A scaler that is handed to a function out of sight may be updated there; such loops are left
    alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for missed in missed_updates(story):
            if missed.step.event.node not in seen:
                seen.add(missed.step.event.node)
                yield _finding(missed)


def _finding(missed: MissedUpdate) -> Finding:
    step, late = missed.step, missed.late
    site = receiver_of(step)
    scaler = "scaler" if site is None else source_text(site)
    how = "never" if late is None else "does not follow each with"
    return finding(
        f"The loop calls `{scaler}.step` and {how} `{scaler}.update()`",
        "missing-scaler-update",
        step if late is None else late,
        cite(step, "the scaler steps here, and is not updated before it steps again"),
        *(() if late is None else (cite(late, "it is updated only here"),)),
        is_symptom=True,
        patch=insert_after(step, f"{scaler}.update()") if late is None else None,
    )


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for data, target in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(data), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    {more}
"""


def _loop(more: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(more=more)})


_WRAPPER = """
import torch
class Stepper:
    def __init__(self, opt, amp):
        self.opt = opt
        self.scaler = torch.amp.GradScaler("cuda", enabled=amp)
    def __call__(self, loss, params, clip=None):
        self.scaler.scale(loss).backward()
        if clip is not None:
            self.scaler.unscale_(self.opt)
            torch.nn.utils.clip_grad_norm_(params, clip)
        self.scaler.step(self.opt)
        self.opt.zero_grad(set_to_none=True)
model = torch.nn.Linear(3, 3)
st = Stepper(torch.optim.SGD(model.parameters(), lr=.1), True)
for x, y in loader:
    st(torch.nn.functional.mse_loss(model(x), y), model.parameters(), 1.0)
"""

FIRES = {
    "in a wrapper": make_run(sources={"train.py": _WRAPPER}),
    "no update": _loop("pass"),
    "after the loop": make_run(sources={"train.py": _LOOP.format(more="") + "scaler.update()"}),
}

_WRAPPER_SOUND = """
import torch
class Stepper:
    def __init__(self, opt, amp):
        self.opt = opt
        self.scaler = torch.amp.GradScaler("cuda", enabled=amp)
    def __call__(self, loss, params, clip=None):
        self.scaler.scale(loss).backward()
        if clip is not None:
            self.scaler.unscale_(self.opt)
            torch.nn.utils.clip_grad_norm_(params, clip)
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad(set_to_none=True)
model = torch.nn.Linear(3, 3)
st = Stepper(torch.optim.SGD(model.parameters(), lr=.1), True)
for x, y in loader:
    st(torch.nn.functional.mse_loss(model(x), y), model.parameters(), 1.0)
"""

SILENT = {
    "updated in a wrapper": make_run(sources={"train.py": _WRAPPER_SOUND}),
    "updated": _loop("scaler.update()"),
    "near miss: one update for several optimizers": make_run(
        sources={
            "train.py": _LOOP.format(more="scaler.update()").replace(
                "    scaler.step(optimizer)", "    for o in optimizers:\n        scaler.step(o)"
            )
        }
    ),
    "near miss: handed to a function out of sight": _loop("finish(scaler)"),
    "near miss: a scaler of features": make_run(
        sources={"train.py": "for x in data:\n    scaler.step(x)\n    loss.backward()\n"}
    ),
}
