import re

import numpy as np

from traindx.analysis.curves import gone_since
from traindx.examples import flat, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding

EMBEDDINGS = re.compile(r"(emb|feature|repr|latent|z|proj).*(std|var|rank)|rankme|effective_rank",
                        re.IGNORECASE)  # fmt: skip
PREDICTIONS = re.compile(r"(pred|output|y_hat|yhat).*(std|var)|(std|var).*(pred|output)",
                         re.IGNORECASE)  # fmt: skip
ENOUGH = 10  # points


@detector(needs=("other/*",), suggests=("representation-collapse", "constant-prediction"))
def check(run: Run) -> Findings:
    """The logged spread of embeddings or predictions goes to zero.

    ## What it detects
    A standard deviation, variance or rank of embeddings or of predictions, logged under such a
    name, that ends at a fiftieth of its largest value or less and stays there.

    ## Why it matters
    Every input gets the same answer; a loss that looks fine only rewards that.

    ## What to do
    For embeddings: a stop-gradient, a variance term or more negatives. For predictions: check that
    the inputs reach the output, and the scale of the targets.

    ## When it is wrong
    A name that merely sounds like a spread misleads this. A noise or exploration scale that is
    annealed to zero is not one of embeddings.
    """
    for name, series in run.series.items():
        label = name.removeprefix("other/")
        is_prediction = bool(PREDICTIONS.search(label))
        if not name.startswith("other/") or not (is_prediction or EMBEDDINGS.search(label)):
            continue
        finite = series.finite()
        start = gone_since(finite.values)
        if len(finite) < ENOUGH or start is None:
            continue
        cause = "constant-prediction" if is_prediction else "representation-collapse"
        what = "predictions" if is_prediction else "embeddings"
        top, end = float(finite.values.max()), finite.last
        yield finding(
            f"The {what} are nearly constant since {finite.when(start)}",
            {cause: Strength.STRONG},
            cite(finite, f"{label} fell from {top:.3g} to {end:.2g}", start, -1, top=top),
        )
        return


FIRES = {
    "embeddings": logged(other_embedding_std=np.geomspace(1.0, 1e-6, 60)),
    "predictions": logged(other_pred_std=np.geomspace(0.8, 1e-5, 60)),
}

SILENT = {
    "kept": logged(other_embedding_std=flat(60, 0.9)),
    "near miss: smaller, not gone": logged(other_embedding_std=np.geomspace(1.0, 0.1, 60)),
    "another number": logged(other_momentum=np.geomspace(1.0, 1e-6, 60)),
}
