import numpy as np

from traindx.analysis.curves import curve
from traindx.analysis.recordings.optimizer_groups import heavy_momentum
from traindx.analysis.recordings.traces import traces_of
from traindx.analysis.recordings.weight_updates import growth
from traindx.examples import Floats, Optimizer, decay, join, recorded, watched, weights
from traindx.registry import Findings, Run, Strength, cite, cite_record, detector, finding

CAUSE = "lr-too-high"
INFLATED = 5.0  # the weights' norm over that at the start, in the middle matrix
SPIKE = 1.5  # the highest loss over the first
RECOVERED = 0.75  # of the first loss gained: it works nevertheless
ENOUGH = 5  # samples
POINTS = 30  # of the loss


@detector(needs=("recording", "loss"), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Heavy momentum multiplies the rate, and weights and loss run away from their start.

    ## What it detects
    Plain descent with a momentum of 0.97 or more whose rate, divided by one minus the momentum, is
    0.5 or more; weights that grow fivefold; and a loss that rises above one and a half times its
    first value and ends above a quarter of it.

    ## Why it matters
    Under a steady gradient momentum m makes a step 1 / (1 - m) times as large: with 0.99 a rate of
    0.05 moves the weights like one of 5, and it takes a hundred steps to turn round.

    ## What to do
    Take 0.9, or lower the rate as far as one minus the momentum was lowered.

    ## When it is wrong
    Segmentation recipes train with 0.99 and small rates; a run that learns, or whose weights keep
    their size, is left alone.
    """
    loss, main = run.objective(), run.recording.main if run.recording is not None else None
    if loss is None or main is None or len(loss.finite()) < POINTS:
        return
    heavy = heavy_momentum(main)
    if heavy is None or any(s.carried for s in main.samples):
        return
    optimizer, momentum, rate = heavy
    finite = loss.finite()
    grown = growth([t for t in traces_of(main) if t.is_owned and t.is_matrix], ENOUGH)
    start, top = float(finite.values[0]), int(np.argmax(finite.values))
    gained = (start - curve(finite.values).end_value) / max(abs(start), 1e-12)
    is_spiking = start > 0.0 and float(finite.values[top]) > SPIKE * start
    if grown < INFLATED or not is_spiking or gained > RECOVERED:
        return
    says = f"momentum = {momentum:.4g}, lr = {rate:.3g}, effectively {rate / (1 - momentum):.3g}"
    yield finding(
        f"Momentum {momentum:.4g} makes the effective learning rate {rate / (1 - momentum):.2g}; "
        f"the weights grow {grown:.0f}-fold and the loss jumps",
        {CAUSE: Strength.STRONG},
        cite_record(main, optimizer.line, says, rate=rate, momentum=momentum),
        cite(finite, f"{finite.origin.name} rises to {finite.values[top]:.4g}", top),
        onset=finite.steps[top],
    )


def _run(loss: Floats, momentum: float, end: float = 10.0, rate: float = 0.05) -> Run:
    norms = np.linspace(1.0, end, 8)
    held = Optimizer(2, type="SGD", groups=({"lr": rate, "momentum": momentum},), size=3)
    process = watched(
        *weights("0.weight", "2.weight", "4.weight"), count=8, optimizer=held,
        weight_norms=lambda i: (norms[i],) * 3,
    )  # fmt: skip
    return recorded(process, loss_train=loss)


_JUMPING = join(decay(60, 1.6, 0.9), [4.0, 3.5, 2.0], decay(40, 1.2, 0.9))

FIRES = {"a hundred steps of memory": _run(_JUMPING, 0.99)}

SILENT = {
    "the usual momentum": _run(_JUMPING, 0.9),
    "near miss: a small rate": _run(_JUMPING, 0.99, rate=0.001),
    "near miss: the weights keep their size": _run(_JUMPING, 0.99, end=1.5),
    "near miss: no jump": _run(decay(100, 1.6, 0.9), 0.99),
    "near miss: it learns": _run(decay(100, 1.6, 0.05), 0.99),
}
