import numpy as np

from traindx.examples import logged
from traindx.model.metric_names import HIGHER_IS_BETTER, kind_of
from traindx.registry import Findings, Run, cite, detector, finding, suggested

GREW = 1.5  # times: a learning rate on its way up
REACHED = 0.95  # of the steps that were planned
GAINED = 0.02  # of its level: what the last evaluation adds
LENGTHS = ("max_steps", "total_steps", "max_iters", "num_train_steps", "train_steps")


@detector(needs=("lr", "loss", "config"), suggests=("insufficient-training", "lr-schedule-misuse"))
def check(run: Run) -> Findings:
    """The run reaches its last step while the learning rate still rises and the model improves.

    ## What it detects
    A learning rate that rises from the first point to the last, a run that has taken all the steps
    that its settings plan, and a loss or score whose last value is its best.

    ## Why it matters
    The run is shorter than its own warm-up: it ends before it has begun, and its result says little
    about the model.

    ## What to do
    Train for several times as many steps, and warm up over a twentieth of them.

    ## When it is wrong
    A smoke test is short by design.
    """
    rate, loss = run.get("lr"), run.objective()
    planned = run.config.number(*LENGTHS)
    if rate is None or loss is None or planned is None or loss.axis != "step":
        return
    rises = len(rate) >= 3 and bool(np.all(np.diff(rate.values) > 0))
    if not rises or rate.last < GREW * float(rate.values[0]) or not planned > 0:
        return
    better = _last_is_best(run)
    if float(loss.steps[-1]) < REACHED * planned or not better:
        return
    says = (
        f"{rate.origin.name} rises from {rate.values[0]:.3g} to {rate.last:.3g} at the last point"
    )
    yield finding(
        "Training ends in its warm-up, while it still improves",
        suggested("insufficient-training", weak="lr-schedule-misuse"),
        cite(rate, says, 0, -1, end=rate.last),
        cite(loss, f"the run ends at step {loss.steps[-1]:.0f} of {planned:.0f}", -1),
    )


def _last_is_best(run: Run) -> bool:
    """Tell whether the last evaluation, or the last training loss, is the best by a good deal."""
    names = [n for n in run.series if "/val" in n or n == "loss/train"]
    for name in names:
        kind = kind_of(name)
        series = run.get(name) if kind in HIGHER_IS_BETTER or kind == "loss" else None
        if series is None or len(series.finite()) < 3:
            continue
        values = series.finite().values * (1.0 if kind in HIGHER_IS_BETTER else -1.0)
        if values[-1] - values[:-1].max() > GAINED * abs(values[-1]):
            return True
    return False


_RATE = [3.6e-6, 7.6e-6, 1.16e-5]

FIRES = {
    "thirty steps": logged(
        lr=_RATE,
        loss_train=[1.10, 1.08, 1.03],
        accuracy_val=[0.45, 0.52, 0.74],
        steps=[10, 20, 30],
        config={"max_steps": 30},
    )
}

SILENT = {
    "near miss: stopped on the way": logged(
        lr=_RATE, loss_train=[1.10, 1.08, 1.03], steps=[10, 20, 30], config={"max_steps": 900}
    ),
    "the rate falls in the end": logged(
        lr=[3e-6, 8e-6, 1e-6],
        loss_train=[1.10, 1.08, 0.8],
        steps=[10, 20, 30],
        config={"max_steps": 30},
    ),
    "near miss: nothing improves": logged(
        lr=_RATE, loss_train=[1.10, 1.09, 1.10], steps=[10, 20, 30], config={"max_steps": 30}
    ),
}
