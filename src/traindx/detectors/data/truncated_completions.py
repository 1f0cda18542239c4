import numpy as np

from traindx.examples import make_run
from traindx.registry import Findings, Run, Strength, cite, detector, finding

MOST = 0.8  # of the completions end at the limit, in the second half of the run
FEWEST = 5  # points


@detector(
    needs=("other/*clipped_ratio*|other/*response_length/clip_ratio*",),
    suggests=("truncated-sequences", "eos-never-trained"),
)
def check(run: Run) -> Findings:
    """Nearly all completions are cut off at the length limit.

    ## What it detects
    A share of clipped completions of four fifths or more over the second half of the run.

    ## Why it matters
    An answer that is cut off has no end and often no result: its reward says little, and the model
    learns to write on.

    ## What to do
    Raise the limit for completions, reward an end of the text, and check that the end token is
    generated and not masked in the loss.

    ## When it is wrong
    A task whose answers all have the length of the limit by design.
    """
    names = ("other/*clipped_ratio*", "other/*response_length/clip_ratio*")
    for series in (s.finite() for name in names for s in run.matching(name)):
        late = series.values[len(series) // 2 :]
        if len(series) < FEWEST or float(np.median(late)) < MOST:
            continue
        share = float(np.median(late))
        says = (
            f"{series.origin.name} is {share:.2g} in the second half, {series.values[0]:.2g} first"
        )
        yield finding(
            f"{100 * share:.0f} % of the completions are cut off at the length limit",
            {"truncated-sequences": Strength.STRONG, "eos-never-trained": Strength.WEAK},
            cite(series, says, len(series) // 2, -1, share=share),
            shows="truncated-sequences",
        )
        return


FIRES = {
    "more and more, then all": make_run(
        {"other/completions/clipped_ratio": np.minimum(1.0, np.linspace(0.6, 1.8, 30))}
    ),
    "verl": make_run({"other/response_length/clip_ratio": np.full(12, 0.93)}),
}

SILENT = {
    "some": make_run({"other/completions/clipped_ratio": np.full(30, 0.2)}),
    "near miss: at first only": make_run(
        {"other/completions/clipped_ratio": np.linspace(1.0, 0.1, 30)}
    ),
    "near miss: the clip of the policy ratio": make_run({"other/clip_ratio/high_mean": np.ones(9)}),
}
