import numpy as np

from traindx.analysis.courses.loss_courses import has_no_bottom
from traindx.examples import make_run
from traindx.registry import Findings, Run, cite, detector, finding, suggested

CAUSES = suggested(moderate="competing-losses unstable-operation", weak="wrong-loss-for-task")


@detector(needs=("loss",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The training loss falls below zero, the faster the further it is.

    ## What it detects
    A loss, or the term that makes up most of it, that ends below zero further than it began above,
    and falls several times as fast in the last third of the run as in the first.

    ## Why it matters
    A loss that can be lowered without end is lowered without end: all other terms are given up for
    it, and the numbers overflow in the end.

    ## What to do
    Find the term that has no lower bound, a product, a density of vanishing width or a minus that
    should not be there, and bound it: clamp the variance, take a softplus, or normalise.

    ## When it is wrong
    A likelihood of densities may be negative; it slows down as it is learnt.
    """
    loss = run.objective()
    if loss is None or not has_no_bottom(loss.finite().values):
        return
    loss = loss.finite()
    parts = [s.finite() for s in run.matching("loss/train/*")]
    driving = [s for s in parts if has_no_bottom(s.values)]
    evidence = [
        _fall
        for s in [loss, *driving[:1]]
        if (
            _fall := cite(
                s, f"{s.origin.name} goes from {s.values[0]:.4g} to {s.last:.4g}", 0, -1, end=s.last
            )
        )
    ]
    yield finding(
        "The loss falls below zero ever faster, as if it had no minimum", CAUSES, *evidence
    )


_FALL = np.array([28.1, 26.3, 20.0, 7.9, -0.5, -8.4, -23.6, -42.3, -68.5, -117.0])

FIRES = {
    "ten iterations": make_run({"loss/train": _FALL}),
    "to the power of four": make_run({"loss/train": 1.0 - np.linspace(0, 60, 200) ** 4}),
}

SILENT = {
    "near miss: a likelihood that slows down": make_run(
        {"loss/train": 3.0 - 8.0 * (1.0 - np.exp(-np.linspace(0, 4, 100)))}
    ),
    "near miss: steadily below zero": make_run({"loss/train": np.linspace(3.0, -4.0, 50)}),
    "falls towards zero": make_run({"loss/train": np.geomspace(3.0, 0.1, 50)}),
}
