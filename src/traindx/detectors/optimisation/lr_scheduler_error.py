from traindx.analysis.errors.call_messages import SCHEDULE
from traindx.analysis.errors.messages import finding, known_error
from traindx.analysis.errors.written_calls import only, program_calls
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("lr-schedule-misuse",))
def check(run: Run) -> Findings:
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
    known = known_error(run, SCHEDULE)
    if known is not None:
        made = [
            call.blamed(f"the schedule is made here: `{call.text}`", as_a_whole=True)
            for call in program_calls(run)
            if call.method.endswith(("LR", "WarmRestarts", "Scheduler")) and call.arguments
        ]
        yield finding(known, culprit=only(made))


FIRES = {
    "past its end": failed(
        "ValueError: Tried to step 1001 times. The specified number of total steps is 1000",
        "scheduler.step()",
        sources={
            "train.py": "from torch.optim.lr_scheduler import OneCycleLR\n"
            "scheduler = OneCycleLR(opt, 0.1, total_steps=1000)\nfor b in d:\n"
            "    scheduler.step()\n"
        },
    ),
    "resumed": failed(
        "KeyError: \"param 'initial_lr' is not specified in param_groups[0] when resuming an "
        'optimizer"',
        "scheduler = CosineAnnealingLR(opt, 100, last_epoch=start)",
    ),
}

SILENT = {
    "near miss: a metric left out": failed(
        "TypeError: ReduceLROnPlateau.step() missing 1 required positional argument: 'metrics'",
        "scheduler.step()",
    ),
    "another error": failed("KeyError: 'label'"),
}
