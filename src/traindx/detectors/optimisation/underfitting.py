import numpy as np

from traindx.analysis.metrics.scores import end_level, is_level, level_start
from traindx.examples import Floats, decay, flat, join, logged, make_run
from traindx.registry import Findings, Run, Strength, cite, detector, finding, suggested

POOR = 0.7  # training accuracy below which a finished model has not fitted its own data
GAP = 0.1  # between training and validation accuracy: more is a question of generalisation
MANY_POINTS = 10
CAUSES = suggested(moderate="insufficient-capacity", weak="label-noise lr-too-high lr-too-low")


@detector(needs=("accuracy/train*", "accuracy/val*"), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """Training and validation accuracy level off together, both poor.

    ## What it detects
    A training accuracy that learnt something, then stays flat for the last part of the run well
    below what a fitted model reaches, with validation beside it.

    ## Why it matters
    There is no gap to close: the model cannot represent the task, or the labels cannot be learnt.

    ## What to do
    Overfit a hundred examples first. If that fails, the model or the labels are at fault; if it
    works, widen or deepen the model and train again.

    ## When it is wrong
    On hard tasks with many classes a low accuracy may be all there is to reach. It is a matter of
    ranking causes, so it stays below certainty.
    """
    train, val = run.get("accuracy/train"), run.get("accuracy/val")
    if train is None or val is None or len(train.finite()) < MANY_POINTS or len(val.finite()) < 3:
        return
    train, val = train.finite(), val.finite()
    scale = 100.0 if max(float(train.values.max()), float(val.values.max())) > 1.5 else 1.0
    end, val_end = end_level(train) / scale, end_level(val) / scale
    start = float(np.median(train.values[: max(1, len(train) // 20)])) / scale
    learnt = end > start + 0.05
    if end > POOR or abs(end - val_end) > GAP or not learnt or not is_level(train):
        return
    says = f"{train.origin.name} stays at {end:.2g} since {train.when(level_start(train))}"
    yield finding(
        f"Training and validation accuracy level off together at {end:.2g} and {val_end:.2g}",
        CAUSES,
        cite(train, says, level_start(train), -1, level=end),
        cite(val, f"{val.origin.name} ends at {val_end:.2g}", -1, level=val_end),
        strength=Strength.MODERATE,
    )


def _rise(end: float, seed: int) -> dict[str, Floats]:
    climb = join(end - decay(40, end - 0.1, 0.0, noise=0.0), flat(60, end, noise=0.01, seed=seed))
    return {"accuracy/train": climb, "accuracy/val": climb[::10] - 0.02}


FIRES = {"a linear model on a hard task": make_run(_rise(0.42, 1))}

SILENT = {
    "a good fit": make_run(_rise(0.93, 1)),
    "near miss: still rising": logged(
        accuracy_train=np.linspace(0.1, 0.5, 100), accuracy_val=np.linspace(0.1, 0.48, 10)
    ),
}
