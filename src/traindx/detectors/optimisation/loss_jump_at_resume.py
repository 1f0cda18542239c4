import numpy as np

from traindx.analysis.metrics.jumps import jump_at_resume, resumes
from traindx.examples import Event, decay, join, logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested


@detector(needs=("loss",), suggests=("resume-without-optimizer-state", "lr-schedule-misuse"))
def check(run: Run) -> Findings:
    """The loss jumps up where the run was resumed.

    ## What it detects
    A place where the step counter goes back or the log says that a checkpoint was loaded, and a
    loss that is clearly higher after it than before.

    ## Why it matters
    Weights alone do not continue a run: without the optimizer's moments, the scheduler's position
    and the scaler's state the first steps undo part of the progress.

    ## What to do
    Save and load the optimizer, scheduler, scaler, step and random state with the weights.

    ## When it is wrong
    A new phase on other data that starts from a checkpoint jumps too.
    """
    raw = run.series.get("loss/train")
    if raw is None or len(raw) < 8 or run.objective() is None:
        return
    for at, evidence in resumes(run, raw):
        jump = jump_at_resume(raw, at)
        if jump is None:
            continue
        before, after = jump
        says = f"{raw.origin.name} went from {before:.4g} to {after:.4g} at {raw.when(at)}"
        yield finding(
            f"The loss jumps where the run was resumed, at {raw.when(at)}",
            suggested(strong="resume-without-optimizer-state", weak="lr-schedule-misuse"),
            cite(raw, says, at, before=before, after=after),
            *evidence,
        )
        return


_BEFORE, _AFTER = decay(300, 4.0, 2.0, noise=0.01), decay(200, 2.9, 1.9, noise=0.01)

FIRES = {
    "the step goes back and the loss up": logged(
        loss_train=join(_BEFORE, _AFTER), steps=join(np.arange(300.0), np.arange(290.0, 490.0))
    ),
    "the log says so": logged(
        loss_train=join(_BEFORE, _AFTER),
        events=[Event("resume", "Resuming from checkpoint-300", "train.log", "line 301", step=300)],
    ),
}

_SEAMLESS = decay(500, 4.0, 2.0, noise=0.01)

SILENT = {
    "near miss: resumed without a jump": logged(
        loss_train=join(_SEAMLESS[:300], _SEAMLESS[290:490]),
        steps=join(np.arange(300.0), np.arange(290.0, 490.0)),
    ),
    "never resumed": logged(loss_train=_SEAMLESS),
}
