import numpy as np

from traindx.examples import flat, logged
from traindx.model.run import Series
from traindx.registry import Finding, Findings, Run, cite, detector, finding, suggested

NOTHING = 0.05  # of the variance
EVALUATIONS = 8
LASTS = 0.5  # of the run, to its end
CAUSES = suggested(
    moderate="constant-prediction dead-relu target-shape-broadcast",
    weak="misaligned-labels unnormalised-inputs unnormalised-targets lr-too-high "
    "saturated-activations",
)


@detector(needs=("r2/*",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """A coefficient of determination of zero: the mean of the targets would do as well.

    ## What it detects
    An R² that was never above a twentieth, and lies around zero in the second half of the run, over
    eight evaluations or more.

    ## Why it matters
    Zero is the score of one answer for all inputs, the mean of the targets. The model has learnt
    where the targets lie, and nothing of how they depend on the inputs.

    ## What to do
    Look at the predictions of one batch. If all are equal, look for dead or saturated units and for
    targets of another shape than the predictions, which are averaged away; if not, for inputs that
    belong to other targets.

    ## When it is wrong
    Targets that do not depend on the inputs, such as tomorrow's returns, have no better score.
    """
    for phase in ("val", "test", "train"):
        score = run.get(f"r2/{phase}")
        if score is None or len(score.finite()) < EVALUATIONS:
            continue
        finite = score.finite()
        late = finite.values[int(len(finite) * (1.0 - LASTS)) :]
        if float(finite.values.max()) > NOTHING or float(np.abs(late).max()) > NOTHING:
            continue
        yield _finding(finite, float(np.median(late)))
        return


def _finding(score: Series, level: float) -> Finding:
    start = int(len(score) * (1.0 - LASTS))
    says = f"{score.origin.name} is {level:.2g} since {score.when(start)} and was never better"
    return finding(
        "R² is about zero, so the model predicts no better than the mean of the targets",
        CAUSES,
        cite(score, says, start, -1, level=level),
        onset=score.steps[0],
    )


def _run(scores: list[float]) -> Run:
    return logged(r2_val=scores, axis="epoch")


FIRES = {"the mean, after a bad start": _run([-8.1, -0.6, *flat(10, 0.0, noise=0.001)])}

SILENT = {
    "learns": _run(list(np.linspace(0.1, 0.9, 12))),
    "near miss: a little, and rising": _run(list(np.linspace(0.0, 0.12, 12))),
    "near miss: worse than the mean, and moving": _run(list(np.linspace(-3.0, -0.4, 12))),
    "few evaluations": _run([0.0, 0.01, 0.0, 0.0]),
}
