import numpy as np

from traindx.analysis.metrics.validation import Turned, turned_loss, validation_losses
from traindx.examples import decay, flat, join, logged
from traindx.registry import Finding, Findings, Run, Strength, detector, finding, suggested

FROM_THE_START = suggested(
    moderate="overfitting distribution-shift",
    weak="preprocessing-mismatch validation-in-train-mode",
)


@detector(needs=("loss/val*", "loss"), suggests=tuple(FROM_THE_START))
def check(run: Run) -> Findings:
    """The validation loss turns up while the training loss goes on falling.

    ## What it detects
    A validation loss that left its minimum by more than its own noise and history allow, while the
    training loss still gains.

    ## Why it matters
    From the turn on the model learns the training set rather than the task. A rise after a minimum
    is overfitting; a rise from the first evaluation on may also be other data or another
    preprocessing.

    ## What to do
    Keep the checkpoint of the minimum; then more data, augmentation, weight decay or a smaller
    model.

    ## When it is wrong
    The loss can worsen while the metric that counts still improves (confident predictions, a few of
    them wrong). Where such a metric is logged and holds, this is a remark and no alarm, unless the
    accuracy of training is far above it.
    """
    if run.objective() is None:
        return
    turns = [t for s in validation_losses(run) if (t := turned_loss(run, s)) is not None]
    found = [_judge(turned) for turned in turns]
    if found:
        yield max(found, key=lambda f: (f.shows is not None, f.strength.rank))


def _judge(turned: Turned) -> Finding:
    since = turned.val.when(turned.at)
    claim = f"The validation loss rises from {since} on, while the training loss falls"
    if turned.verdict == "better":
        return finding(
            f"{claim}, but the validation metric holds",
            {"overfitting": Strength.WEAK},
            *turned.evidence,
            strength=Strength.WEAK,
            is_symptom=False,
        )
    return finding(
        claim,
        FROM_THE_START if turned.at == 0 else {"overfitting": Strength.STRONG},
        *turned.evidence,
        strength=Strength.STRONG if turned.is_clear else Strength.MODERATE,
        shows="overfitting" if turned.is_clear and turned.at > 0 else None,
    )


_ANEW = join(decay(10, 0.42, 0.001, noise=0.0), [3.1], decay(9, 0.25, 0.05, noise=0.0))
_TRAIN = decay(30, 3.0, 0.3, noise=0.01)
_TURNING = join(decay(8, 4.0, 3.5, noise=0.002), np.linspace(3.52, 4.3, 22))

FIRES = {
    "a low accuracy that holds, far below that of training": logged(
        loss_train=_TRAIN,
        loss_val=join(decay(8, 1.1, 0.7, noise=0.002), np.linspace(0.72, 1.6, 22)),
        accuracy_train=np.linspace(0.5, 0.98, 30),
        accuracy_val=flat(30, 0.61, noise=0.005),
        axis="epoch",
    ),
    "turns after a minimum": logged(loss_train=_TRAIN, loss_val=_TURNING, axis="epoch"),
    "five epochs, three of them worse": logged(
        loss_train=[1.2, 0.8, 0.5, 0.3, 0.15], loss_val=[0.9, 0.7, 0.8, 0.95, 1.2], axis="epoch"
    ),
    "three epochs of fine-tuning": logged(
        loss_train=[0.55, 0.3, 0.12], loss_val=[0.45, 0.55, 0.8], axis="epoch"
    ),
}

SILENT = {
    "near miss: two epochs": logged(loss_train=[0.55, 0.3], loss_val=[0.45, 0.55], axis="epoch"),
    "both fall": logged(loss_train=_TRAIN, loss_val=decay(30, 3.2, 0.6)),
    "validation levels off": logged(loss_train=_TRAIN, loss_val=decay(30, 3.2, 2.0)),
    "near miss: noisy validation": logged(loss_train=_TRAIN, loss_val=flat(30, 0.6, noise=0.15)),
    "near miss: both rise, a divergence": logged(
        loss_train=join(decay(20), np.linspace(0.5, 2, 10)), loss_val=_TURNING
    ),
    "near miss: both begin anew on other data": logged(
        loss_train=_ANEW,
        loss_val=join(np.linspace(4.9, 8.1, 10), [2.0], np.linspace(4.1, 7.5, 9)),
        axis="epoch",
    ),
    "double descent": logged(
        loss_train=_TRAIN,
        loss_val=join(decay(10, 3, 1), np.linspace(1, 1.5, 8), np.linspace(1.45, 0.7, 12)),
    ),
}
