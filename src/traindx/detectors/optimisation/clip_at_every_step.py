import numpy as np

from traindx.analysis.curves import curve
from traindx.analysis.metrics.gradient_norms import clip_in_use, is_optimizer_adaptive
from traindx.examples import decay, flat, make_run
from traindx.registry import Findings, Run, cite, detector, finding

ALWAYS = 0.95  # of the logged steps
FAR_BELOW = 20.0  # median norm over clip; recipes clip at a fifth of the norm and train well
STALLED = 0.05  # of the starting loss


@detector(needs=("grad_norm", "config|clip_max", "loss"), suggests=("gradient-clipping-too-tight",))
def check(run: Run) -> Findings:
    """The gradient is clipped many-fold on nearly every step while the loss stands still.

    ## What it detects
    A clip, recorded or configured, far below the norm on nearly every step, in a run that hardly
    learns.

    ## Why it matters
    Every update is shrunk by the same large factor: the learning rate in force is that much
    smaller.

    ## What to do
    Clip at about twice the median of the norm, so that only outliers are touched.

    ## When it is wrong
    Optimizers that divide by the size of the gradient (Adam and its kin) do not feel a constant
    factor; with these nothing is said. A norm logged after clipping equals the clip and says
    nothing.
    """
    loss, norm = run.objective(), run.get("grad_norm")
    limit, cited = clip_in_use(run)
    if loss is None or norm is None or len(loss.finite()) < 20:
        return
    norms = norm.finite().values
    if limit <= 0 or not len(norms) or is_optimizer_adaptive(run):
        return
    share, excess = float(np.mean(norms > 1.01 * limit)), float(np.median(norms)) / limit
    stalled = abs(curve(loss.finite().values).gained) < STALLED
    if share < ALWAYS or excess < FAR_BELOW or not stalled:
        return
    says = (
        f"the median of {norm.origin.name} is {excess:.0f} times the clip, {share:.0%} are above it"
    )
    yield finding(
        f"Clipping is too tight: it cuts the gradients {excess:.0f}-fold and the loss stalls",
        "gradient-clipping-too-tight",
        cite(norm, says, 0, -1, excess=excess, share=share),
        *cited,
    )


def _run(clip: float, loss: object, optimizer: str = "sgd") -> Run:
    series = {"loss/train": np.asarray(loss), "grad_norm": flat(100, 0.4, noise=0.1)}
    return make_run(series, config={"max_grad_norm": clip, "optimizer": optimizer})


def _used(clip: float, loss: object) -> Run:
    series = {"grad_norm": flat(100, 0.4, noise=0.1), "clip_max": np.full(100, clip)}
    return make_run({"loss/train": np.asarray(loss), **series}, config={"optimizer.type": "SGD"})


FIRES = {
    "four-hundredfold": _run(0.001, flat(100, 2.3, noise=0.005)),
    "as recorded": _used(0.001, flat(100, 2.3, noise=0.005)),
}

SILENT = {
    "near miss: a usual clip on a plateau": _run(0.1, flat(100, 2.3, noise=0.005)),
    "tight, and learning": _run(0.001, decay(100)),
    "near miss: as recorded, and learning": _used(0.001, decay(100)),
    "near miss: Adam does not feel it": _run(0.001, flat(100, 2.3, noise=0.005), "AdamW"),
}
