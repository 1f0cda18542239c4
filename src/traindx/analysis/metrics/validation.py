"""The validation loss beside the training loss and the scores of the same data."""

from dataclasses import dataclass

import numpy as np

from traindx.analysis.curves import divergence, running_median
from traindx.model.findings import Evidence, cite
from traindx.model.metric_names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of
from traindx.model.run import Floats, Run, Series

CLEAR = 1.2  # the validation loss a fifth above its best: no longer a matter of calibration alone
TRAIN_GAIN = 0.05  # of its level at the turn that the training loss must still gain
TELLING = (HIGHER_IS_BETTER | LOWER_IS_BETTER) - {"loss", "precision", "recall", "reward"}
PARTS_OF_ONE_TASK = frozenset({"box", "cls", "obj", "dfl", "seg", "mask", "kpt"})  # one mAP for all
APART = 0.2  # of the examples: right in training, and wrong in validation
HOLDS = 0.02  # of its best value: a metric this near to it has not turned
METRIC_LOSS = 0.05  # of its best value: a metric this far from it has
ANEW = 5.0  # times its level before: a training loss that meets other data
BEHIND = 1.2  # the validation loss over that of training, at the end
WIDENED = 1.1  # what the gap is at the end over what it was at the start
MUCH_WORSE = 1.5  # times its best: what a held accuracy does not excuse


def validation_losses(run: Run) -> list[Series]:
    """Return the validation loss, or else its parts."""
    main = run.get("loss/val")
    return [main] if main is not None else run.matching("loss/val/*")


def cite_accuracies_apart(run: Run, turned: float) -> tuple[Evidence, ...]:
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


def turn_of(val: Series) -> int | None:
    """The point of the minimum that the validation loss left for good."""
    values = val.values
    if len(values) in (3, 4, 5):  # fine-tuning mostly takes three epochs
        best = int(np.argmin(values))
        after = values[best:]
        climbs = len(after) > 2 and bool(np.all(np.diff(after) > 0))
        return best if climbs and after[-1] > CLEAR * after[0] else None
    found = divergence(values) if len(values) > 5 else None
    return None if found is None or found.is_recovering else found.best


def begins_anew(train: Series, val: Series, turn: int) -> bool:
    """Tell whether training jumps up at the minimum: it met other data, and both begin anew."""
    at = _position(train, val, turn)
    before = train.values[max(0, at - 2) : at]
    return at > 0 and float(train.values[at]) > ANEW * float(np.max(before))


def cite_train_gain(train: Series, val: Series, turn: int) -> Evidence | None:
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


def metric_says(run: Run, val: Series) -> tuple[str, tuple[Evidence, ...]]:
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


def stays_behind(train: Floats, val: Floats) -> bool:
    """Tell whether a validation loss ends above that of training, and the gap has widened."""
    first, last = (_level(train, part) for part in (slice(0, 1), slice(-1, None)))
    early, late = (_level(val, part) for part in (slice(0, 1), slice(-1, None)))
    if min(first, last, early) <= 0.0 or late < BEHIND * last:
        return False
    return late / last > WIDENED * early / first


def _level(values: Floats, part: slice) -> float:
    """The middle of the first or of the last quarter of a curve."""
    return float(np.median(np.concatenate(np.array_split(values, 4)[part])))


@dataclass(frozen=True, slots=True)
class Turned:
    """A validation loss that turned up while the training loss fell, and what metrics say."""

    val: Series
    at: int
    best: float
    end: float
    verdict: str
    evidence: tuple[Evidence, ...]

    @property
    def is_clear(self) -> bool:
        """Whether the metrics agree, or the loss rose by more than calibration explains."""
        return self.verdict == "worse" or self.end > CLEAR * self.best


def turned_loss(run: Run, val: Series) -> Turned | None:
    """Return how a validation loss turned up for good while the training loss fell."""
    finite = val.finite()
    train = run.get(val.name.replace("/val", "/train", 1)) or run.objective()
    turn = turn_of(finite)
    if turn is None or train is None or begins_anew(train.finite(), finite, turn):
        return None
    gain = cite_train_gain(train.finite(), finite, turn)
    if gain is None:
        return None
    best, end = float(finite.values[turn]), float(np.median(finite.values[-2:]))
    verdict, metric = metric_says(run, finite)
    says = (
        f"{finite.origin.name} rose by {100 * (end / best - 1):.0f} % from its minimum {best:.4g} "
        f"at {finite.when(turn)} to {end:.4g}"
    )
    evidence = (cite(finite, says, turn, -1, best=best, end=end), gain, *metric)
    apart = cite_accuracies_apart(run, turn / len(finite)) if end > MUCH_WORSE * best else ()
    if verdict == "better" and apart:
        verdict, evidence = "worse", (*evidence, *apart)
    return Turned(finite, turn, best, end, verdict, evidence)
