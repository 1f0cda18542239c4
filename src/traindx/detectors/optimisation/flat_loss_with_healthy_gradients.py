from statistics import median

from traindx.analysis.metrics.objective import stands_still
from traindx.analysis.recordings.owners import still_moves
from traindx.analysis.recordings.traces import told_once, traces_of
from traindx.examples import Floats, decay, flat, recorded, watched, weights
from traindx.model.recording import Process
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

ENOUGH = 3  # samples
POINTS = 30  # of the loss
LEARNT = 0.05  # of the starting loss
SMALL = 1e-4  # of the norm; steps that are too large are far above it
# what leaves parameters without a gradient or without a change
REFUTED = (
    "missing-optimizer-step", "missing-backward", "detached-loss", "frozen-parameters",
    "parameters-not-in-optimizer", "gradients-cleared-before-step", "lr-zero", "no-grad-training",
)  # fmt: skip


@detector(needs=("recording", "loss"), suggests=())
def check(run: Run) -> Findings:
    """The loss does not fall, and the recording shows that the machinery of training works.

    ## What it detects
    A loss that gains less than 5 % while every parameter that is to be trained gets a gradient, is
    in an optimizer and changes.

    ## Why it matters
    It rules out what people look for first: a missing step, a detached loss, frozen or forgotten
    parameters. The reason lies in the data, the loss function, the model or the learning rate.

    ## What to do
    Look at what enters the loss, at a batch with its labels, and try to overfit one batch.

    ## When it is wrong
    Gradients may reach every parameter through a side path while the main one is cut.
    """
    if stands_still(run, POINTS, LEARNT):
        yield from told_once(run, _look)


def _look(process: Process) -> Findings:
    known = traces_of(process)
    traces = [t for t in known if t.parameter.is_trainable]
    is_whole = all(t.is_owned and t.has_gradient and still_moves(t) for t in traces)
    is_seen = traces and min(len(t.samples) for t in traces) >= ENOUGH
    if not is_whole or not is_seen or any(s.cleared for s in process.samples):
        return
    ratios = [r for t in traces if t.is_matrix for r in t.ratios if r is not None]
    typical = median(ratios) if ratios else float("nan")
    against = dict.fromkeys(REFUTED, Strength.STRONG)
    if len(traces) < len(known):
        del against["frozen-parameters"]
    if typical < SMALL:
        against["lr-too-high"] = Strength.STRONG
    last = process.samples[-1]
    says = f"all {len(traces)} parameters get gradients and move, by {typical:.1e} of their norm"
    yield finding(
        "Gradients reach every parameter and every parameter moves",
        {},
        cite_record(process, last.line, says, step=last.step, update=typical),
        strength=Strength.MODERATE,
        against=against,
        is_symptom=False,
    )


def _run(loss: Floats, *, still: tuple[str, ...] = (), grad: float | None = 0.1) -> Run:
    process = watched(*weights("0.weight", "2.weight"), grads=(0.1, grad), still=still)
    return recorded(process, loss_train=loss)


FIRES = {"a loss that stands still": _run(flat(60, 2.3, noise=0.005))}

SILENT = {
    "near miss: one parameter stays": _run(flat(60, 2.3, noise=0.005), still=("2.weight",)),
    "near miss: one parameter has no gradient": _run(flat(60, 2.3, noise=0.005), grad=None),
    "it learns": _run(decay(60)),
}
