import re

import numpy as np

from traindx.examples import flat, make_run
from traindx.model.run import Series
from traindx.registry import Findings, Run, Strength, cite, detector, finding

LOAD = re.compile(r"expert.*(load|frac|usage|util|share|tokens|count|prob)|"
                  r"(load|frac|usage|util|share|tokens|count).*expert", re.IGNORECASE)  # fmt: skip
NUMBERED = re.compile(r"\d+")
IDLE = 0.1  # of an even share
MANY_IDLE = 0.5  # of the experts
ENOUGH = 5  # points


@detector(needs=("other/*[Ee]xpert*",), suggests=("expert-collapse",))
def check(run: Run) -> Findings:
    """Half of the experts of a mixture get next to no tokens.

    ## What it detects
    Loads that are logged per expert, of which half or more end below a tenth of an even share.

    ## Why it matters
    Experts without tokens learn nothing; the model is as small as the few that are used.

    ## What to do
    Raise the weight of the load-balancing loss, add noise to the router, or use a capacity limit.

    ## When it is wrong
    Loads of one batch are noisy; the median of the last part is judged. Early in training the
    router has not settled.
    """
    experts = [s.finite() for n, s in run.series.items() if LOAD.search(n) and NUMBERED.search(n)]
    experts = [s for s in experts if len(s) >= ENOUGH]
    if len(experts) < 4:
        return
    loads = np.array([float(np.median(s.values[-len(s) // 3 :])) for s in experts])
    if loads.min() < 0 or loads.sum() <= 0:
        return
    even = float(loads.mean())
    idle = loads < IDLE * even
    if float(idle.mean()) < MANY_IDLE:
        return
    busiest = experts[int(np.argmax(loads))]
    quiet: Series = experts[int(np.argmin(loads))]
    yield finding(
        f"{int(idle.sum())} of {len(loads)} experts get almost no tokens",
        {"expert-collapse": Strength.STRONG},
        cite(
            busiest, f"{busiest.origin.name} gets {loads.max() / loads.sum():.0%} of the tokens", -1
        ),
        cite(quiet, f"{quiet.origin.name} gets {loads.min() / loads.sum():.1%} of the tokens", -1),
        shows="expert-collapse",
        onset=quiet.steps[0],
    )


def _run(loads: list[float]) -> Run:
    return make_run({f"other/moe/expert_{i}_load": flat(30, v) for i, v in enumerate(loads)})


FIRES = {"two of eight": _run([0.5, 0.48, 0.004, 0.003, 0.003, 0.004, 0.003, 0.003])}

SILENT = {
    "balanced": _run([0.13, 0.12, 0.11, 0.14, 0.12, 0.13, 0.13, 0.12]),
    "near miss: uneven, all used": _run([0.4, 0.2, 0.1, 0.08, 0.06, 0.06, 0.05, 0.05]),
}
