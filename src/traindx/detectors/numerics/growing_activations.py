import re

import numpy as np

from traindx.analysis.curves import slope_z
from traindx.examples import Floats, flat, make_run
from traindx.registry import Findings, Run, Strength, cite, detector, finding

ACTIVATION = re.compile(
    r"activation|(^|[/_.])act([/_.]|$)|hidden.*(norm|max|std)|logit.*(max|norm)", re.IGNORECASE
)
GROWN = 1000.0  # times the level at the start; trained networks grow tenfold
HALF_LIMIT = 65504.0  # beyond, half precision overflows
SURE = 5.0  # Mann-Kendall
ENOUGH = 15  # points


@detector(needs=("other/*",), suggests=("exploding-activations",))
def check(run: Run) -> Findings:
    """A logged size of activations or logits grows a thousandfold.

    ## What it detects
    A norm, maximum or standard deviation of activations, hidden states or logits that rises
    steadily to a thousand times its start, or beyond the range of half precision.

    ## Why it matters
    What grows without bound ends in overflow, at the latest in half precision.

    ## What to do
    Normalise (layer norm before each block), scale residual branches, add a z-loss for logits,
    lower the learning rate.

    ## When it is wrong
    A few channels with large values are normal in trained transformers; a level that stays is left
    alone.
    """
    for name, series in run.series.items():
        label = name.removeprefix("other/")
        if not name.startswith("other/") or not ACTIVATION.search(label):
            continue
        finite = series.finite()
        if len(finite) < ENOUGH or slope_z(finite.values) < SURE:
            continue
        start = float(np.median(np.abs(finite.values[: len(finite) // 10 + 1])))
        end = float(np.median(finite.values[-3:]))
        has_grown = end > GROWN * start or (end > HALF_LIMIT and end > 30 * start)
        if start <= 0 or not has_grown:
            continue
        yield finding(
            f"Activations explode: {label} is {end / start:.0f} times its initial value",
            {"exploding-activations": Strength.STRONG},
            cite(finite, f"{label} rose from {start:.3g} to {end:.3g}", 0, -1, end=end),
            shows="exploding-activations",
        )
        return


def _run(values: Floats) -> Run:
    return make_run({"other/activation_norm/block.3": values})


FIRES = {"without bound": _run(np.geomspace(1.0, 1e5, 60))}

SILENT = {
    "steady": _run(flat(60, 12.0)),
    "near miss: grows tenfold and settles": _run(12.0 - 11.0 * np.exp(-np.arange(60) / 8.0)),
}
