import numpy as np

from traindx.examples import flat, make_run
from traindx.registry import Findings, Run, cite, detector, finding, suggested

ENOUGH = 3  # points
CAUSES = suggested(moderate="nan-in-data", weak="unstable-operation unnormalised-targets")


@detector(needs=("loss/train/*",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """One term of the loss is NaN from the first point on, and the others are not.

    ## What it detects
    A term of the training loss without a single finite value, beside one that has only such.

    ## Why it matters
    The sum is NaN and so are its gradients: nothing is learnt. Since the other terms are computed
    from the same model, the NaN enters with what only this term uses: its targets or its weights.

    ## What to do
    Check the targets of this term for NaN, and its formula for log, sqrt and division by zero.

    ## When it is wrong
    A term that is switched off may be logged as NaN.
    """
    terms = [s for s in run.matching("loss/train/*") if len(s) >= ENOUGH]
    lost = [s for s in terms if not bool(s.is_finite.any())]
    sound = [s for s in terms if bool(s.is_finite.all())]
    if not lost or not sound:
        return
    yield finding(
        f"The loss term {lost[0].origin.name} is NaN from the first point on, others are not",
        CAUSES,
        cite(lost[0], f"{lost[0].origin.name} is NaN at all {len(lost[0])} points", 0, -1),
        cite(sound[0], f"{sound[0].origin.name} is {sound[0].last:.4g} at the end", -1),
    )


FIRES = {
    "its targets": make_run(
        {"loss/train/regression": np.full(26, np.nan), "loss/train/classification": flat(26, 5.3)}
    )
}

SILENT = {
    "near miss: NaN later on": make_run(
        {
            "loss/train/regression": np.append(flat(20, 3.0), np.full(6, np.nan)),
            "loss/train/classification": flat(26, 5.3),
        }
    ),
    "both finite": make_run({"loss/train/a": flat(9, 1.0), "loss/train/b": flat(9, 2.0)}),
}
