import numpy as np

from traindx.analysis.metrics.broken_losses import (
    OPEN_COURSE,
    cite_announced_half,
    cite_half_precision,
    cite_last_finite,
    course_before,
    gave_up,
    has_scored,
    is_written_as_zero,
    lost_loss,
    value_word,
)
from traindx.analysis.recordings.breakdowns import cause_of
from traindx.examples import decay, join, logged, make_run
from traindx.model.findings import Evidence
from traindx.model.run import Failure, Origin, Series
from traindx.registry import Finding, Findings, Run, Strength, cite, detector, finding, suggested

ASTRONOMICAL = 1e6  # a loss that begins here is in units that no learning rate fits
_FILTERED = suggested(moderate="fp16-overflow padding-in-loss nan-in-data", weak="lr-too-high")
_SCORED = suggested(moderate="nan-in-data unstable-operation", weak="padding-in-loss")


@detector(
    needs=("loss|loss/*|failure",),
    suggests=(
        "lr-too-high", "missing-gradient-clipping", "unstable-operation", "nan-in-data",
        "fp16-overflow", "bad-initialisation", "empty-validation", "unnormalised-targets",
        "fully-masked-attention", "padding-in-loss", "incorrect-custom-backward",
    ),
)  # fmt: skip
def check(run: Run) -> Findings:
    """The loss becomes NaN or infinite and stays so.

    ## What it detects
    The first point from which on the loss is no longer a number, or one beyond 1e30, and how the
    loss came there: from the first step on, after a climb, or from one healthy value to the next.
    An error that the training loop raised because its loss is NaN counts as such a point. Where a
    recorder replayed the step, what it found stands in place of such guesses.

    ## Why it matters
    From that step on the weights are lost. How it came about tells the causes apart: a climb speaks
    for steps that are too large, a sudden NaN for an operation or a batch, NaN from the start for
    the data or the set-up.

    ## What to do
    `traindx run` replays the step and names the operation. Without it: check the batch for NaN,
    then look for log, sqrt, division and exp in the loss.

    ## When it is wrong
    Gaps that a tool wrote as `nan` between finite values are left alone; so is a single NaN that
    the run survived, as with a gradient scaler that skips a step.
    """
    lost, failure = lost_loss(run), gave_up(run)
    if lost is not None:
        yield _finding(run, *lost)
    elif failure is not None:
        yield _told(run, failure)


def _told(run: Run, failure: Failure) -> Finding:
    """The run stopped itself: the error is the NaN, and the curve leads up to it."""
    loss = run.main_loss()
    before = None if loss is None else loss.finite()
    course, suggests = (
        ("", OPEN_COURSE) if before is None or not len(before) else course_before(run, before)
    )
    half = cite_half_precision(run) or cite_announced_half(run)
    if half and course != "after a rise":
        suggests = {**suggests, "fp16-overflow": Strength.MODERATE}
    text = failure.message.split("\n", 1)[0][:200]
    how = f", {course}" if course else ""
    return finding(
        f"The run stopped because its loss became NaN or infinite{how}",
        suggests,
        Evidence(f"{failure.type}: {text}", failure.artifact, failure.locator),
        *cite_last_finite(before),
        *half,
        onset=failure.step,
    )


def _finding(run: Run, loss: Series, onset: int, before: Series, phase: str) -> Finding:
    course, suggests = course_before(run, before)
    is_set = bool(half := cite_half_precision(run))
    half = half or cite_announced_half(run)
    replayed = cause_of(run)
    if half and course != "after a rise":
        # who only says that it trains in mixed precision mostly scales the loss as well
        at_once = is_set and (not len(before) or bool(np.isinf(loss.values[onset])))
        strength = Strength.STRONG if at_once else Strength.MODERATE
        suggests = {**suggests, "fp16-overflow": strength}
    if len(before) and abs(float(before.values[0])) > ASTRONOMICAL:
        suggests = {**suggests, "unnormalised-targets": Strength.MODERATE}
    if phase == "val" and is_written_as_zero(run):
        course = "while the training loss is logged as 0"
        suggests = {**_FILTERED, **({"fp16-overflow": Strength.STRONG} if half else {})}
    elif phase == "val":
        is_known = len(loss) > 1 or run.has("loss/train*")
        never = Strength.MODERATE if len(before) or not is_known else Strength.STRONG
        course, suggests = "in validation only", {"empty-validation": never}
        if has_scored(run):
            suggests = _SCORED
    elif replayed is not None:  # the operation is known: how the loss came there decides nothing
        suggests = {replayed: Strength.MODERATE}
    word = value_word(float(loss.values[onset]))
    # the line with which a loop gives up has no step of its own
    gives_up = len(loss) == 1 and len(before) > 1
    since = f"after {before.when(len(before) - 1)}" if gives_up else f"since {loss.when(onset)}"
    return finding(
        f"The {'training' if phase == 'train' else 'validation'} loss is {word} {since}, {course}",
        suggests,
        cite(loss, f"{loss.origin.name} is {word} {since}", onset, -1),
        *cite_last_finite(before),
        *half,
        onset=before.steps[-1] if gives_up else loss.steps[onset],
    )


_NAN = np.full(20, np.nan)
_LOG = Origin("train.log", "loss")
_STOP = Failure("ValueError", "Loss is nan, stopping training", "train.log", "line 90")
_OTHER = Failure("ValueError", "the info of the loss is missing", "train.log", "line 90")

_GIVES_UP = Series(
    "loss/train@2", np.array([np.nan]), np.array([1.0]), _LOG, "epoch", places=np.array([51])
)
_BAR = Series("loss/train", np.full(9, np.nan), np.arange(9.0), _LOG, places=np.arange(9))
_LOGGED = Series("loss/train@2", decay(9), np.arange(9.0), _LOG, places=np.arange(9))

FIRES = {
    "a last line says so": Run(
        series={
            "loss/train": Series(
                "loss/train", decay(50), np.arange(50.0), _LOG, places=np.arange(50)
            ),
            "loss/train@2": _GIVES_UP,
        }
    ),
    "a part is huge where the whole is NaN": make_run(
        {"loss/train": [1.8, 1.75, 1.7], "loss/train/mask": [0.6, 0.6, 1.2e6]}, failures=[_STOP]
    ),
    "the loop stopped itself": logged(loss_train=decay(50), failures=[_STOP]),
    "sudden NaN": logged(loss_train=join(decay(200), _NAN)),
    "climbs into NaN": logged(
        loss_train=join(decay(50), 0.5 * np.exp(np.arange(12.0)), [np.inf], _NAN)
    ),
    "leaves the range of numbers at once": logged(
        loss_train=join(decay(50, 60.0, 58.0), [-3.2e34])
    ),
    "NaN from the start": logged(loss_train=_NAN),
    "NaN that a Trainer writes as 0": logged(loss_train=np.zeros(8), loss_val=np.full(2, np.nan)),
    "NaN in validation only, where something is right": logged(
        loss_train=decay(50), loss_val=np.full(5, np.nan), accuracy_val=np.full(5, 0.1)
    ),
    "NaN in validation only": logged(loss_train=decay(50), loss_val=np.full(5, np.nan)),
}

SILENT = {
    "near miss: a progress bar that is not told of the loss": Run(
        series={"loss/train": _BAR, "loss/train@2": _LOGGED}
    ),
    "near miss: another error about the loss": make_run(failures=[_OTHER]),
    "near miss: one NaN that the run survived": logged(
        loss_train=join(decay(100), [np.nan], decay(100, 0.4, 0.3))
    ),
    "a healthy run": logged(loss_train=decay(200), loss_val=decay(10)),
}
