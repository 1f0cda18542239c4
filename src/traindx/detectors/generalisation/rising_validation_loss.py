import numpy as np

from traindx.analysis.courses.held_out import Pair, pairs_of
from traindx.analysis.metrics.validation import (
    Turned,
    begins_anew,
    metric_says,
    turned_loss,
    validation_losses,
)
from traindx.examples import decay, flat, join, logged
from traindx.registry import Finding, Findings, Run, Strength, cite, detector, finding, suggested

LISTED = 0.65  # of those who read such curves call it overfitting …
LISTED_THOUGH_BETTER = 0.9  # … also where a score holds its best …
OPEN = 0.35  # … and so many at least where it stays open what it is
FROM_THE_START = suggested(
    moderate="overfitting distribution-shift",
    weak="preprocessing-mismatch validation-in-train-mode",
)
WORSENS = suggested(moderate="overfitting", weak="distribution-shift lr-too-high")


@detector(
    needs=("loss/val*|rmse/val*|mse/val*|mae/val*|perplexity/val*", "loss"),
    suggests=(*FROM_THE_START, "lr-too-high"),
)
def check(run: Run) -> Findings:
    """The validation loss turns up while the training loss goes on falling.

    ## What it detects
    A validation loss that left its minimum by more than its own noise and history allow, while the
    training loss still gains. Where noise hides that, the figures of both curves are weighed
    together: how far they part after the minimum, how surely, how steadily and for how long, and
    what the scores lose; the weights were fitted on real runs.

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
    found += [f for p in pairs_of(run) if (f := _weigh(run, p)) is not None]
    if found:
        yield max(found, key=lambda f: (f.shows is not None, _belief(f)))


def _belief(found: Finding) -> int:
    strength = found.suggests.get("overfitting")
    return -1 if strength is None else strength.rank


def _weigh(run: Run, pair: Pair) -> Finding | None:
    """Judge a pair of curves by all their figures at once."""
    probability = pair.probability()
    holds, metric = metric_says(run, pair.val)
    is_anew = begins_anew(pair.train, pair.val, pair.turn)
    if is_anew or probability < OPEN or (holds == "better" and probability < LISTED):
        return None
    listed = LISTED_THOUGH_BETTER if holds == "better" else LISTED
    val, best, end = pair.val, pair.val_course.best, pair.val_course.end
    train = pair.train_course.level_at(pair.val_course.best_at), pair.train_course.end
    rose = (
        f"{val.origin.name} is lowest at {val.when(pair.turn)} ({best:.4g}) and ends at {end:.4g}"
    )
    fell = f"{pair.train.origin.name} goes from {train[0]:.4g} to {train[1]:.4g} meanwhile"
    return finding(
        f"The validation loss worsens after {val.when(pair.turn)}, while the training loss falls",
        {**WORSENS, "overfitting": Strength.STRONG} if probability > listed else WORSENS,
        cite(val, rose, pair.turn, -1, best=best, end=end, probability=probability),
        cite(pair.train, fell, -1, at_turn=train[0], end=train[1]),
        *metric,
        strength=Strength.STRONG if probability > listed else Strength.MODERATE,
    )


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
