import numpy as np

from traindx.analysis.metrics.scores import ZERO_EVALUATIONS, last_share, nothing_scored
from traindx.examples import logged, make_run
from traindx.registry import Findings, Run, Strength, cite, detector, finding, suggested

SCORES = ("accuracy", "em", "f1", "recall", "precision", "map", "bleu", "rouge", "iou", "dice")
LEARNT = 0.9  # of the training examples, at the end
CANDIDATES = suggested(
    moderate="metric-bug preprocessing-mismatch", weak="overfitting fully-masked-attention"
)
UNDEFINED = suggested(moderate="empty-validation", weak="metric-bug")  # the share of nothing is 0/0


@detector(
    needs=("accuracy/*|em/*|f1/*|recall/*|precision/*|map/*|bleu/*|rouge/*|iou/*|dice/*",),
    suggests=(*CANDIDATES, "empty-validation"),
)
def check(run: Run) -> Findings:
    """A score on held-out data is zero at every evaluation, and training is nearly all right.

    ## What it detects
    An accuracy, exact match, F1, recall, BLEU, IoU or Dice score of validation or test that is zero
    every time, three times or more, beside a training accuracy that ends above 90 %; or one that is
    always NaN while the training loss is finite.

    ## Why it matters
    A model that fits its training data is right now and then on other data as well, if only by
    chance. Never is a sign that evaluation asks something else than training taught: other
    preprocessing, decoding without what training gives the model to see, a comparison that cannot
    be true.

    ## What to do
    Evaluate the training data with the code of the evaluation. If the score is zero there too, look
    at that code; print one prediction beside its target.

    ## When it is wrong
    Scores of single classes are nothing where a class is rare or absent; all scores of a kind have
    to be. A column for a score that is not computed holds zeros, and whole sequences may all be
    wrong for a while when every part is right nine times out of ten.
    """
    loss = run.main_loss()
    is_sound = loss is not None and len(loss) >= ZERO_EVALUATIONS and np.isfinite(loss.values).all()
    undefined = nothing_scored(run, SCORES, ("*",), lambda v: bool(np.isnan(v).all()))
    if undefined is not None and is_sound:
        never = f"{undefined.name} is NaN at all {len(undefined)} evaluations"
        yield finding(
            f"The score {undefined.name} is NaN at every evaluation, although the training loss is "
            "finite",
            UNDEFINED,
            cite(undefined, never, -1),
            strength=Strength.MODERATE,
            onset=undefined.steps[0],
        )
    trained = [s for s in run.matching("accuracy/train*") if last_share(s) >= LEARNT]
    series = nothing_scored(run, SCORES, ("val*", "test*"), lambda v: bool((v == 0.0).all()))
    if not trained or series is None:
        return
    at_end = f"{trained[0].name} ends at {last_share(trained[0]):.0%}"
    yield finding(
        f"The score {series.name} is 0 at every evaluation, although {at_end}",
        CANDIDATES,
        cite(series, f"{series.name} is 0 at all {len(series)} evaluations", -1),
        cite(trained[0], at_end, -1),
        strength=Strength.MODERATE,
        onset=series.steps[0],
    )


def _run(scores: tuple[float, ...], trained: float = 0.98, name: str = "em/test") -> Run:
    return make_run({"accuracy/train": [0.5, 0.9, trained], name: scores})


_NAN = float("nan")


def _scored(*scores: float, loss: float = 0.4) -> Run:
    return logged(loss_train=[1.0, 0.7, loss], recall_val=scores)


FIRES = {
    "the recall of nothing": _scored(_NAN, _NAN, _NAN),
    "never an exact match": _run((0.0, 0.0, 0.0)),
    "never right": _run((0.0, 0.0, 0.0), 98.0, "accuracy/val"),
}


def _with_class(kind: str, score: float) -> Run:
    return make_run(
        {
            "loss/train": [1.0, 0.7, 0.4],
            "accuracy/train": [0.5, 0.9, 0.98],
            f"{kind}/val": [0.4, 0.5, 0.6],
            f"{kind}/val/rare": [score] * 3,
        }
    )


SILENT = {
    "near miss: a class that validation does not have": _with_class("iou", _NAN),
    "near miss: a class that is never found": _with_class("recall", 0.0),
    "near miss: NaN, and the loss too": _scored(_NAN, _NAN, _NAN, loss=_NAN),
    "near miss: NaN until there was something to count": _scored(_NAN, _NAN, 0.4),
    "near miss: now and then": _run((0.0, 0.0, 0.002)),
    "near miss: not yet": _run((0.0, 0.0)),
    "near miss: training is not there yet": _run((0.0, 0.0, 0.0), 0.7),
    "near miss: an error of zero": _run((0.0, 0.0, 0.0), name="wer/val"),
}
