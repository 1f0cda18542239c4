import numpy as np

from traindx.analysis.curves import curve
from traindx.analysis.metrics.objective import finite_objective
from traindx.analysis.metrics.weight_norms import norm_of_layers
from traindx.examples import decay, flat, logged, make_run
from traindx.model.run import Floats, as_number
from traindx.registry import Findings, Run, Strength, cite, cite_setting, detector, finding

SHRUNK = 0.2  # of the norm at the start
HEAVY = 0.2  # decoupled decay above this is outside published recipes
STALLED = 0.3  # of the starting loss gained at most
ENOUGH = 20  # points
ENOUGH_SAMPLES = 8  # of a recording, whose first ones are exact


@detector(
    needs=("weight_norm|layers/*/weight_norm", "config", "loss"),
    suggests=("weight-decay-too-high",),
)
def check(run: Run) -> Findings:
    """The norm of the weights shrinks to a fraction while the loss hardly falls.

    ## What it detects
    A weight norm that ends below a fifth of its start under a configured weight decay that is
    heavy, in a run that learns little.

    ## Why it matters
    The decay removes more per step than the gradient adds; the network is driven to the zero
    function.

    ## What to do
    Lower the weight decay tenfold, and take biases and normalisation layers out of it.

    ## When it is wrong
    Networks with normalisation layers do not feel the scale of their weights; one that learns well
    is left alone.
    """
    norm, loss = run.get("weight_norm") or norm_of_layers(run), finite_objective(run)
    setting = run.config.find("weight_decay", "wd", "l2", "weight_decay_rate")
    enough = ENOUGH if run.recording is None else ENOUGH_SAMPLES
    if norm is None or loss is None or setting is None or len(norm.finite()) < enough:
        return
    amount = as_number(setting.value) or 0.0
    finite = norm.finite()
    start, end = float(finite.values[0]), float(np.median(finite.values[-3:]))
    gained = curve(loss.values).gained
    if amount < HEAVY or end > SHRUNK * start or gained > STALLED:
        return
    says = f"{finite.origin.name} shrank from {start:.4g} to {end:.4g}"
    yield finding(
        f"The weights shrink to {end / start:.0%} of their initial norm and the loss hardly falls",
        {"weight-decay-too-high": Strength.STRONG},
        cite(finite, says, 0, -1, start=start, end=end),
        cite_setting(setting),
        shows="weight-decay-too-high",
    )


def _run(norm: Floats, loss: Floats, amount: float) -> Run:
    return logged(weight_norm=norm, loss_train=loss, config={"weight_decay": amount})


_SHRINKING = np.geomspace(40.0, 1.0, 60)

FIRES = {
    "to nothing": _run(_SHRINKING, flat(60, 2.3, noise=0.01), 1.0),
    "layer by layer": make_run(
        {
            "layers/0.weight/weight_norm": _SHRINKING,
            "layers/2.weight/weight_norm": 2 * _SHRINKING,
            "loss/train": flat(60, 2.3, noise=0.01),
        },
        config={"optimizer.weight_decay": 1.0},
    ),
}

SILENT = {
    "near miss: shrinks and learns": _run(_SHRINKING, decay(60), 1.0),
    "an ordinary decay": _run(_SHRINKING, flat(60, 2.3, noise=0.01), 0.01),
    "keeps its norm": _run(flat(60, 40.0), flat(60, 2.3, noise=0.01), 1.0),
}
