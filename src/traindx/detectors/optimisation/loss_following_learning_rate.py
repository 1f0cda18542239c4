import numpy as np

from traindx.analysis.courses.loss_courses import follows_the_rate
from traindx.examples import logged
from traindx.model.findings import Evidence
from traindx.model.run import Floats
from traindx.registry import Findings, Run, Strength, cite, detector, finding

WORSE = 1.15  # times its first value: a validation loss that was broken as well


@detector(needs=("lr", "loss"), suggests=("lr-too-high",))
def check(run: Run) -> Findings:
    """The loss rises with the learning rate, falls with it again, and ends above its start.

    ## What it detects
    A training loss that moves with a learning rate that is warmed up and then lowered, and that
    ends well above where it began. A validation loss that does the same makes it sure.

    ## Why it matters
    The steps at the peak of the schedule destroy what the model knew; the low rates at the end no
    longer bring it back. Fine-tuning bears a hundredth of what training from scratch bears.

    ## What to do
    Divide the highest learning rate by ten or by thirty and compare the first evaluation.

    ## When it is wrong
    Data that grow harder over the same steps look the same.
    """
    found = follows_the_rate(run)
    if found is None:
        return
    loss, rate, alike = found
    top = int(np.argmax(rate.values))
    high = float(rate.values[top])
    told = [
        cite(rate, f"{rate.origin.name} is at most {high:.3g}", top, highest=high),
        cite(loss, f"{loss.origin.name} goes from {_course(loss.values)}", 0, -1, likeness=alike),
    ]
    held_out = _cite_broken(run)
    yield finding(
        "The loss rises and falls with the learning rate and ends above its start",
        {"lr-too-high": Strength.STRONG if held_out else Strength.MODERATE},
        *told,
        *held_out,
    )


def _course(values: Floats) -> str:
    return f"{values[0]:.4g} to {values.max():.4g} and ends at {values[-1]:.4g}"


def _cite_broken(run: Run) -> tuple[Evidence, ...]:
    val = run.get("loss/val")
    if val is None or len(val.finite()) < 3:
        return ()
    values = val.finite().values
    if float(np.median(values[-2:])) < WORSE * float(values[0]):
        return ()
    says = f"{val.origin.name} goes from {values[0]:.4g} to {values[-1]:.4g}"
    return (cite(val.finite(), says, 0, -1, start=values[0], end=values[-1]),)


_RATE = np.concatenate([np.linspace(2e-4, 3e-3, 4), np.linspace(2.8e-3, 1e-5, 16)])
_LOSS = 1.2 + 400.0 * _RATE * np.linspace(0.4, 1.3, 20) + np.linspace(0.0, 0.5, 20)

FIRES = {
    "train and validation": logged(lr=_RATE, loss_train=_LOSS, loss_val=_LOSS + 1.0),
    "five points": logged(
        lr=[1.5e-3, 3e-3, 2.1e-3, 1.2e-3, 2.7e-4],
        loss_train=[1.24, 2.03, 2.16, 1.98, 1.79],
        loss_val=[2.6, 3.9, 4.2, 3.7, 3.3],
    ),
}

SILENT = {
    "near miss: a warm-up that it survives": logged(
        lr=_RATE, loss_train=np.concatenate([np.linspace(2.3, 2.9, 4), np.linspace(2.6, 0.4, 16)])
    ),
    "near miss: rises when the rate is low": logged(lr=_RATE, loss_train=np.linspace(1.0, 3.0, 20)),
}
