"""Validation worsens while training goes on improving."""

import numpy as np

from traindx.analysis.curves import divergence, running_median
from traindx.examples import decay, flat, join, make_run
from traindx.model.findings import Evidence, Finding, Strength, cite, finding, suggested
from traindx.model.metric_names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of
from traindx.model.run import Series
from traindx.registry import Findings, Run, detector

CLEAR = 1.2  # the validation loss a fifth above its best: no longer a matter of calibration alone
TRAIN_GAIN = 0.05  # of its level at the turn that the training loss must still gain
TELLING = (HIGHER_IS_BETTER | LOWER_IS_BETTER) - {"loss", "precision", "recall", "reward"}
PARTS_OF_ONE_TASK = frozenset({"box", "cls", "obj", "dfl", "seg", "mask", "kpt"})  # one mAP for all
MUCH_WORSE = 1.5  # times its best: what a held accuracy does not excuse
APART = 0.2  # of the examples: right in training, and wrong in validation
HOLDS = 0.02  # of its best value: a metric this near to it has not turned
METRIC_LOSS = 0.05  # of its best value: a metric this far from it has
ANEW = 5.0  # times its level before: a training loss that meets other data
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
    found = [f for s in _validation_losses(run) if (f := _judge(run, s)) is not None]
    if found:
        yield max(found, key=lambda f: (f.shows is not None, f.strength.rank))


def _validation_losses(run: Run) -> list[Series]:
    main = run.get("loss/val")
    return [main] if main is not None else run.matching("loss/val/*")


def _judge(run: Run, val: Series) -> Finding | None:
    finite = val.finite()
    train = run.get(val.name.replace("/val", "/train", 1)) or run.objective()
    turn = _turn(finite)
    if turn is None or train is None or _begins_anew(train.finite(), finite, turn):
        return None
    gain = _train_gain(train.finite(), finite, turn)
    if gain is None:
        return None
    best, end = float(finite.values[turn]), float(np.median(finite.values[-2:]))
    verdict, metric = _metric_says(run, finite)
    says = (
        f"{finite.origin.name} rose by {100 * (end / best - 1):.0f} % from its minimum {best:.4g} "
        f"at {finite.when(turn)} to {end:.4g}"
    )
    evidence = (cite(finite, says, turn, -1, best=best, end=end), gain, *metric)
    claim = f"The validation loss rises from {finite.when(turn)} on, while the training loss falls"
    apart = _apart(run, turn / len(finite)) if end > MUCH_WORSE * best else ()
    if verdict == "better" and apart:
        verdict, evidence = "worse", (*evidence, *apart)
    if verdict == "better":
        return finding(
            f"{claim}, but the validation metric holds",
            {"overfitting": Strength.WEAK},
            *evidence,
            strength=Strength.WEAK,
            is_symptom=False,
        )
    is_clear = verdict == "worse" or end > CLEAR * best
    from_the_start = turn == 0
    return finding(
        claim,
        FROM_THE_START if from_the_start else {"overfitting": Strength.STRONG},
        *evidence,
        strength=Strength.STRONG if is_clear else Strength.MODERATE,
        shows="overfitting" if is_clear and not from_the_start else None,
    )


def _apart(run: Run, turned: float) -> tuple[Evidence, ...]:
    """Cite accuracies of training and validation that end far apart, with no gain since the turn.

    The turn is given as a share of the run.
    """
    train, val = run.get("accuracy/train"), run.get("accuracy/val")
    if train is None or val is None or min(len(train), len(val)) < 4:
        return ()
    ends = [float(np.median(s.finite().values[-3:])) for s in (train, val)]
    whole = 100.0 if max(ends) > 1.5 else 1.0
    at = int(turned * len(val))
    gained = ends[1] - float(np.median(val.values[max(0, at - 1) : at + 2]))
    if ends[0] - ends[1] < APART * whole or gained > HOLDS * whole / 2:
        return ()
    says = f"{train.origin.name} ends at {ends[0]:.4g} and {val.origin.name} at {ends[1]:.4g}"
    return (cite(val, says, -1, train=ends[0], validation=ends[1]),)


def _turn(val: Series) -> int | None:
    """The point of the minimum that the validation loss left for good."""
    values = val.values
    if len(values) in (3, 4, 5):  # fine-tuning mostly takes three epochs
        best = int(np.argmin(values))
        after = values[best:]
        climbs = len(after) > 2 and bool(np.all(np.diff(after) > 0))
        return best if climbs and after[-1] > CLEAR * after[0] else None
    found = divergence(values) if len(values) > 5 else None
    return None if found is None or found.is_recovering else found.best


def _begins_anew(train: Series, val: Series, turn: int) -> bool:
    """Tell whether training jumps up at the minimum: it met other data, and both begin anew."""
    at = _position(train, val, turn)
    before = train.values[max(0, at - 2) : at]
    return at > 0 and float(train.values[at]) > ANEW * float(np.max(before))


def _train_gain(train: Series, val: Series, turn: int) -> Evidence | None:
    """What the training loss gained after the turn, or None where it did not go on falling."""
    if len(train) < 3:
        return None
    at = _position(train, val, turn)
    later = train.values[at:]
    if len(later) < 2:
        return None
    width = max(1, min(len(later) // 3, len(train) // 10))
    there = float(np.median(train.values[max(0, at - width) : at + width]))
    end = float(np.median(train.values[-width:]))
    if not end < (1.0 - TRAIN_GAIN) * there:
        return None
    says = f"{train.origin.name} kept falling, from {there:.4g} to {end:.4g}"
    return cite(train, says, at, -1, at_turn=there, end=end)


def _position(train: Series, val: Series, turn: int) -> int:
    """The point of the training series at the time of a validation point."""
    if train.axis == val.axis:
        return int(np.searchsorted(train.steps, val.steps[turn]).clip(0, len(train) - 1))
    return int(len(train) * turn / len(val))


def _metric_says(run: Run, val: Series) -> tuple[str, tuple[Evidence, ...]]:
    """Whether the metrics on the same data hold their best or fall off too."""
    part = "/".join(val.name.split("/")[2:])
    worse: tuple[Evidence, ...] = ()
    for name in run.series:
        kind = kind_of(name)
        in_part = not part or name.endswith(part) or part in PARTS_OF_ONE_TASK
        if kind not in TELLING or not name.startswith(f"{kind}/val") or not in_part:
            continue
        series = run.get(name)
        if series is None or len(series.finite()) < min(4, len(val)):
            continue
        change, evidence = _change(series.finite())
        if change >= -HOLDS:
            return "better", (evidence,)
        if change < -METRIC_LOSS:
            worse = (evidence,)
    return ("worse" if worse else "unknown"), worse


def _change(metric: Series) -> tuple[float, Evidence]:
    """How far a metric ends from its own best, as a share of that; negative is worse."""
    sign = 1.0 if kind_of(metric.name) in HIGHER_IS_BETTER else -1.0
    scores = running_median(sign * metric.values, 3)
    top = int(np.argmax(scores))
    best, end = float(scores[top]), float(np.median(scores[-3:]))
    says = (
        f"{metric.origin.name} was best at {metric.when(top)} ({sign * best:.4g}) and ends at "
        f"{sign * end:.4g}"
    )
    evidence = cite(metric, says, top, -1, best=sign * best, end=sign * end)
    return (end - best) / max(abs(best), 1e-12), evidence


_ANEW = join(decay(10, 0.42, 0.001, noise=0.0), [3.1], decay(9, 0.25, 0.05, noise=0.0))
_TRAIN = decay(30, 3.0, 0.3, noise=0.01)
_TURNING = join(decay(8, 4.0, 3.5, noise=0.002), np.linspace(3.52, 4.3, 22))

FIRES = {
    "a low accuracy that holds, far below that of training": make_run(
        {
            "loss/train": _TRAIN,
            "loss/val": join(decay(8, 1.1, 0.7, noise=0.002), np.linspace(0.72, 1.6, 22)),
            "accuracy/train": np.linspace(0.5, 0.98, 30),
            "accuracy/val": flat(30, 0.61, noise=0.005),
        },
        axis="epoch",
    ),
    "turns after a minimum": make_run({"loss/train": _TRAIN, "loss/val": _TURNING}, axis="epoch"),
    "five epochs, three of them worse": make_run(
        {"loss/train": [1.2, 0.8, 0.5, 0.3, 0.15], "loss/val": [0.9, 0.7, 0.8, 0.95, 1.2]},
        axis="epoch",
    ),
    "three epochs of fine-tuning": make_run(
        {"loss/train": [0.55, 0.3, 0.12], "loss/val": [0.45, 0.55, 0.8]}, axis="epoch"
    ),
}

SILENT = {
    "near miss: two epochs": make_run(
        {"loss/train": [0.55, 0.3], "loss/val": [0.45, 0.55]}, axis="epoch"
    ),
    "both fall": make_run({"loss/train": _TRAIN, "loss/val": decay(30, 3.2, 0.6)}),
    "validation levels off": make_run({"loss/train": _TRAIN, "loss/val": decay(30, 3.2, 2.0)}),
    "near miss: noisy validation": make_run(
        {"loss/train": _TRAIN, "loss/val": flat(30, 0.6, noise=0.15)}
    ),
    "near miss: both rise, a divergence": make_run(
        {"loss/train": join(decay(20), np.linspace(0.5, 2, 10)), "loss/val": _TURNING}
    ),
    "near miss: both begin anew on other data": make_run(
        {
            "loss/train": _ANEW,
            "loss/val": join(np.linspace(4.9, 8.1, 10), [2.0], np.linspace(4.1, 7.5, 9)),
        },
        axis="epoch",
    ),
    "double descent": make_run(
        {
            "loss/train": _TRAIN,
            "loss/val": join(decay(10, 3, 1), np.linspace(1, 1.5, 8), np.linspace(1.45, 0.7, 12)),
        }
    ),
}
