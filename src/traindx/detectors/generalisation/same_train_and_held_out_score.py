import numpy as np

from traindx.analysis.courses.one_answer_scores import same_scores
from traindx.examples import make_run
from traindx.registry import Findings, Run, Strength, cite, detector, finding

POINTS = 6  # evaluations with several values: two scores do not agree that often by chance


@detector(needs=("*/val*|*/test*",), suggests=("evaluating-on-training-data", "metric-bug"))
def check(run: Run) -> Findings:
    """A score of training and of held-out data is the same number, evaluation after evaluation.

    ## What it detects
    Two series of one metric, of training and of validation or test, that are equal in every digit
    at six points or more, and not constant.

    ## Why it matters
    Two sets of examples never give the same numbers. Either both are the training set, or one
    result is logged twice: what is called held out says nothing.

    ## What to do
    Look at which loader the evaluation is given, and at which variable is logged under both names.

    ## When it is wrong
    A test of the loop that overfits a few examples on purpose evaluates on them.
    """
    for train, held_out in same_scores(run, POINTS):
        says = f"{held_out.origin.name} equals {train.origin.name} at all {len(train)} points"
        yield finding(
            "Held-out data and training data give exactly the same score",
            {"evaluating-on-training-data": Strength.STRONG, "metric-bug": Strength.WEAK},
            cite(held_out, says, 0, -1, points=len(train)),
            against={"overfitting": Strength.STRONG},
        )
        return


_CER = 0.97 - 0.01 * np.arange(30) + 0.003 * np.random.default_rng(0).standard_normal(30)

FIRES = {"one error rate": make_run({"cer/train": _CER, "cer/val": _CER})}

SILENT = {
    "near miss: nearly the same": make_run({"cer/train": _CER, "cer/val": np.round(_CER, 2)}),
    "near miss: both at their ceiling": make_run(
        {"accuracy/train": np.ones(30), "accuracy/val": np.ones(30)}
    ),
}
