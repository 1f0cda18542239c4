import numpy as np

from traindx.analysis.courses.course import constant_share
from traindx.analysis.courses.one_answer_scores import stuck_score
from traindx.examples import flat, make_run
from traindx.registry import Findings, Run, cite, detector, finding, suggested

STUCK = suggested(
    moderate="class-collapse",
    weak="constant-prediction repetition-collapse lr-too-high vanishing-gradients missing-warmup "
    "metric-bug",
)


@detector(needs=("accuracy/*|wer/*|cer/*",), suggests=tuple(STUCK))
def check(run: Run) -> Findings:
    """A held-out score has one value in nearly all evaluations, or shows that nothing is right.

    ## What it detects
    An accuracy below 90 % that is the same to four digits in all but one of many evaluations, also
    of one head among several; or a word or character error rate of one, evaluation after
    evaluation.

    ## Why it matters
    A model that tells inputs apart changes some answers as it trains. One that does not gives all
    inputs one answer, an empty text or the most frequent class.

    ## What to do
    Print a few predictions. If they are all alike, lower the learning rate or warm it up, and look
    at the counts of the classes.

    ## When it is wrong
    A handful of examples are answered alike for long; a metric that is computed on something else
    than the outputs is constant too.
    """
    score = stuck_score(run)
    if score is None:
        return
    told = f"The score {score.origin.name}"
    share = constant_share(score.values)
    often = f"{100 * share:.0f} % of {len(score)} evaluations"
    says = f"{score.origin.name} is {score.last:.4g} in {often}"
    yield finding(
        f"{told} is stuck at {score.last:.4g}, as if all inputs got one answer",
        STUCK,
        cite(score, says, 0, -1, score=score.last),
    )


_ONE = np.full(19, 0.5268)
_ONCE = np.where(np.arange(19) == 14, 0.5023, _ONE)

FIRES = {
    "one head of two, once another value": make_run({"accuracy/val/cls": _ONCE}),
    "no word is right": make_run({"wer/val": np.ones(6), "cer/val": np.full(6, 0.9993)}),
}

SILENT = {
    "near miss: few digits": make_run({"accuracy/val": np.full(19, 0.52)}),
    "near miss: it changes in the end": make_run(
        {"accuracy/val": np.append(_ONE[:16], [0.53, 0.54])}
    ),
    "moves": make_run({"accuracy/val": flat(19, 0.5268)}),
    "some words are right": make_run({"wer/val": np.linspace(1.0, 0.4, 6)}),
}
