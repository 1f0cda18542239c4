import numpy as np

from traindx.examples import logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

BEYOND = 1e7  # the largest vocabularies have a million words
ENOUGH = 2  # points
CAUSES = suggested(strong="lr-too-high", weak="missing-warmup bad-initialisation metric-bug")


@detector(needs=("perplexity/train",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The perplexity is above the size of any vocabulary, to the end.

    ## What it detects
    A training perplexity of more than ten million at every point of the second half of a run.

    ## Why it matters
    A perplexity is the number of words among which the model is as undecided as one that guesses.
    To guess among all of them would be better: the model is sure of what is wrong. Steps that are
    too large carry a model there.

    ## What to do
    Look at the learning rate in force: a rate that is meant to be scaled by a schedule (Noam) is a
    thousandfold too large without it. Then warm up and clip gradients.

    ## When it is wrong
    A perplexity of a whole sentence, or the exponential of a loss that was summed, has no such
    bound; then the measure is at fault and not the model.
    """
    told = run.get("perplexity/train")
    if told is None or len(told.finite()) < ENOUGH:
        return
    perplexity = told.finite()
    late = perplexity.values[len(perplexity) // 2 :]
    if float(late.min()) < BEYOND:
        return
    lowest = float(late.min())
    yield finding(
        f"The perplexity is at least {lowest:.3g}, worse than random guessing among all tokens",
        CAUSES,
        cite(perplexity, f"{perplexity.origin.name} is at least {lowest:.3g}", -1, end=lowest),
        onset=perplexity.steps[0],
    )


FIRES = {"far beyond": logged(perplexity_train=[2.6e43, 2.6e43, 1.1e40])}

SILENT = {
    "an untrained model": logged(perplexity_train=[9.1e4, 3.2e4, 8.1e3]),
    "near miss: far beyond at the first point only": logged(
        perplexity_train=np.geomspace(1e12, 50.0, 20)
    ),
    "near miss: not a number": logged(perplexity_train=[40.0, np.inf, np.inf]),
}
