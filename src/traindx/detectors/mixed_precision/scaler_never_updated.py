"""The gradient scaler steps and is never updated."""

from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import (
    cite,
    finding,
    insert_after,
    receiver_of,
    source_text,
)
from traindx.analysis.program.training.phases import Loop, training_loops
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.scaling import is_gradient_scaler, scaler_of
from traindx.analysis.program.training.updates import is_handed_on
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("missing-scaler-update",))
def check(run: Run) -> Findings:
    """A training loop steps through a gradient scaler and never updates it.

    ## What it detects
    A loop with `scaler.scale(loss).backward()` and `scaler.step(optimizer)`, where nothing in the
    program calls `update()` of that scaler.

    ## Why it matters
    The scale never adapts. After the first overflow every step is skipped for good, and a second
    `unscale_` raises because the scaler still thinks that it is within the same step.

    ## What to do
    Call `scaler.update()` once per iteration, after the last `scaler.step`.

    ## When it is wrong
    A scaler that is handed to a function out of sight may be updated there; such loops are left
    alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for loop in training_loops(story):
            step = _step_without_update(loop)
            if step is not None and step.event.node not in seen:
                seen.add(step.event.node)
                yield _finding(step)


def _step_without_update(loop: Loop) -> Deed | None:
    """The last step through a scaler of this loop's loss that nothing updates."""
    story = loop.story
    for step in reversed(loop.does(Do.STEP)):
        scaler = step.through
        if scaler is None or not is_gradient_scaler(story, scaler):
            continue
        scales = any(scaler_of(d.subject) is scaler for d in loop.does(Do.BACKWARD))
        is_updated = any(d.subject is scaler for d in story.does(Do.SCALER_UPDATE))
        if scales and not is_updated and not is_handed_on(story, story.events, scaler):
            return step
    return None


def _finding(step: Deed) -> Finding:
    site = receiver_of(step)
    scaler = "scaler" if site is None else source_text(site)
    return finding(
        f"The loop calls `{scaler}.step` and never `{scaler}.update()`",
        "missing-scaler-update",
        step,
        cite(step, "the scaler steps here, and is not updated"),
        is_symptom=True,
        patch=insert_after(step, f"{scaler}.update()"),
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

FIRES = {"in a wrapper": make_run(sources={"train.py": _WRAPPER}), "no update": _loop("pass")}

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
    "near miss: handed to a function out of sight": _loop("finish(scaler)"),
    "near miss: a scaler of features": make_run(
        sources={"train.py": "for x in data:\n    scaler.step(x)\n    loss.backward()\n"}
    ),
}
