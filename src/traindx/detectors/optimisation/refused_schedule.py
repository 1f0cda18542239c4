"""A learning-rate schedule was stepped past its end, or resumed without what it starts from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, explain, make_failed_run, match_root

PAST = re.compile(r"Tried to step (\d+) times. The specified number of total steps is (\d+)")
RESUMED = re.compile(r"param 'initial_lr' is not specified in param_groups\[\d+\] when resuming")


@detector(needs=("failure",), suggests=("lr-schedule-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """A learning-rate schedule refuses to go on.

    ## What it detects
    "Tried to step 1001 times. The specified number of total steps is 1000": the schedule was made
    for fewer steps than are taken. "param 'initial_lr' is not specified … when resuming": a
    schedule with `last_epoch` was made before the optimizer had its state back.

    ## Why it matters
    The run dies at a step that has nothing wrong with it; until then the rate followed a plan that
    is shorter than the training.

    ## What to do
    Count the steps that are taken: `epochs * len(loader)`, divided by the accumulation; on resume
    load the optimizer's and the schedule's state, and leave `last_epoch` out.

    ## When it is wrong
    If the schedule is as long as intended, the loop is too long.
    """
    hit = match_root(run, PAST, RESUMED)
    if hit is None:
        return
    failure, found = hit
    if found.re is PAST:
        claim = f"The schedule is made for {found[2]} steps, and step {found[1]} is asked of it"
    else:
        claim = "The schedule is resumed, and the optimizer does not know the rate it started with"
    yield explain(run, failure, claim, shows="lr-schedule-misuse", culprit=_made(run))


def _made(run: Run) -> Culprit | None:
    """The one place at which such a schedule is made."""
    found = []
    for module in project_of(run).modules:
        for call, name in module.calls():
            if name.rsplit(".", 1)[-1].endswith(("LR", "WarmRestarts", "Scheduler")) and call.args:
                says = f"the schedule is made here: `{ast.unparse(call)}`"
                found.append(Culprit(module, module.statement_of(call) or call, says))
    return found[0] if len(found) == 1 else None


FIRES = {
    "past its end": make_failed_run(
        "ValueError: Tried to step 1001 times. The specified number of total steps is 1000",
        "scheduler.step()",
        sources={
            "train.py": "from torch.optim.lr_scheduler import OneCycleLR\n"
            "scheduler = OneCycleLR(opt, 0.1, total_steps=1000)\nfor b in d:\n"
            "    scheduler.step()\n"
        },
    ),
    "resumed": make_failed_run(
        "KeyError: \"param 'initial_lr' is not specified in param_groups[0] when resuming an "
        'optimizer"',
        "scheduler = CosineAnnealingLR(opt, 100, last_epoch=start)",
    ),
}

SILENT = {
    "near miss: a metric left out": make_failed_run(
        "TypeError: ReduceLROnPlateau.step() missing 1 required positional argument: 'metrics'",
        "scheduler.step()",
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
