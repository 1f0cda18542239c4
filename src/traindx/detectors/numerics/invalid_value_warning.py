import re

import numpy as np

from traindx.analysis.curves import since
from traindx.examples import Event, decay, join, logged, make_run
from traindx.registry import Findings, Run, Strength, cite_event, detector, finding

INVALID = re.compile(
    r"invalid value encountered|divide by zero encountered|overflow encountered|All-NaN|"
    r"Mean of empty slice|Degrees of freedom <= 0 for slice",
    re.IGNORECASE,
)
# nothing over nothing: a class without examples in a metric does that in many a healthy run
RATIO = re.compile(
    r"in (?:scalar |true_|floor_)?divide\b|in (?:long|double)_scalars|empty slice|All-NaN"
    r"|Degrees of freedom",
    re.IGNORECASE,
)


@detector(needs=("events", "loss/*"), suggests=("nan-in-data",))
def check(run: Run) -> Findings:
    """NumPy warns of an invalid value, and the training loss becomes NaN after it.

    ## What it detects
    A NumPy runtime warning (invalid value, division by zero, an empty mean) in the log before the
    first point of a training loss that stays NaN.

    ## Why it matters
    NumPy works on the data, not on the model: a NaN that begins there enters with the batch.

    ## What to do
    Look at the line that the warning names; drop or repair the sample where the data are made.

    ## When it is wrong
    The warning may come from a metric that is computed beside training; a division of nothing by
    nothing, as of a class without examples, counts little for that reason.
    """
    loss = run.main_loss()
    if loss is None or loss.is_finite[-1]:
        return
    for event in run.events:
        if event.kind != "warning" or not INVALID.search(event.text):
            continue
        at = loss.position_of(event)
        if at is not None and at <= since(~loss.is_finite):
            yield finding(
                "NumPy warned of an invalid value before the loss became NaN",
                {"nan-in-data": Strength.WEAK if RATIO.search(event.text) else Strength.MODERATE},
                cite_event(event),
                strength=Strength.MODERATE,
                is_symptom=False,
            )
            return


def _warning(step: float, text: str = "RuntimeWarning: invalid value encountered in log") -> Event:
    return Event("warning", text, "other.log", "line 7", step=step)


_NAN = {"loss/train": join(decay(50), np.full(10, np.nan))}

FIRES = {"a warning, then NaN": make_run(_NAN, events=[_warning(49)])}

SILENT = {
    "near miss: a warning in a healthy run": logged(loss_train=decay(60), events=[_warning(49)]),
    "a warning after the fact": make_run(_NAN, events=[_warning(58)]),
    "another warning": make_run(_NAN, events=[_warning(10, "UserWarning: something else")]),
}
