from collections.abc import Mapping

import numpy as np

from traindx.analysis.curves import curve
from traindx.analysis.recordings.observations import last_step
from traindx.analysis.recordings.optimizer_groups import heaviest_decay, is_ruled_by_decay
from traindx.analysis.recordings.traces import traces_of
from traindx.examples import Floats, Optimizer, decay, flat, recorded, watched, weights
from traindx.registry import Findings, Run, Strength, cite, cite_record, detector, finding

CAUSE = "weight-decay-too-high"
SHRUNK = 0.2  # of the norm at the start, in the middle matrix
STALLED = 0.3  # of the starting loss gained at most
EXPLAINED = 1.0  # rate times decay over the run: alone it shrinks weights to a third
ENOUGH = 5  # samples
POINTS = 20  # of the loss


@detector(needs=("recording", "loss", "lr"), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Weight matrices shrink, by a decay that is large enough to be the reason.

    ## What it detects
    The middle weight matrix loses four fifths of its norm in a run that learns little, and the
    rate times the decay, summed over the steps, explains it. Or it loses half under a coupled decay
    of 0.05 and more in a network without normalisation, and the penalty that the decay stands for
    outweighs half of the loss that is left.

    ## Why it matters
    What each step teaches is taken away before it adds up; the network is driven to the zero
    function, or stays too smooth for its data.

    ## What to do
    Lower the weight decay tenfold; take biases and normalisation layers out of it.

    ## When it is wrong
    Below a normalisation layer the size of weights does not matter, so there only a run that hardly
    learns counts. A strong penalty may be wanted on a handful of noisy examples.
    """
    loss, rate = run.objective(), run.get("lr")
    main = run.recording.main if run.recording is not None else None
    if loss is None or rate is None or main is None or len(loss.finite()) < POINTS:
        return
    heavy = heaviest_decay(main)
    traces = [t for t in traces_of(main) if t.is_owned and t.is_matrix and t.has_gradient]
    known = [t for t in traces if len(t.norms) >= ENOUGH and t.norms[0] > 0.0]
    if heavy is None or not known or not len(rate.finite()):
        return
    optimizer, amount = heavy
    left = float(np.median([t.norms[-1] / t.norms[0] for t in known]))
    values = loss.finite().values
    total = float(np.mean(rate.finite().values)) * amount * (last_step(main) + 1)
    is_driven = left < SHRUNK and total > EXPLAINED and curve(values).gained < STALLED
    if not is_driven and not is_ruled_by_decay(main, optimizer, amount, left, known, values):
        return
    says = f"the median weight matrix ends at {left:.0%} of its initial norm"
    yield finding(
        f"A weight decay of {amount:.3g} shrinks the weights to {left:.0%} of their initial norm",
        {CAUSE: Strength.STRONG},
        cite_record(main, known[0].samples[-1].line, says, left=left),
        cite_record(main, optimizer.line, f"weight_decay = {amount:.3g}", amount=amount),
        cite(loss.finite(), f"{loss.origin.name} ends at {values[-1]:.4g}", 0, -1),
        shows=CAUSE if is_driven else None,
        onset=loss.finite().steps[0],
    )


def _run(
    loss: Floats, end: float, amount: float, *, kind: str = "AdamW", rate: float = 0.05,
    modules: Mapping[str, str] | None = None,
) -> Run:  # fmt: skip
    norms = np.geomspace(4.0, 4.0 * end, 8)
    held = Optimizer(2, type=kind, groups=({"lr": rate, "weight_decay": amount},), size=2)
    process = watched(
        *weights("0.weight", "2.weight"), count=8, modules=modules, optimizer=held,
        weight_norms=lambda i: (norms[i],) * 2,
    )  # fmt: skip
    return recorded(process, loss_train=loss, lr=np.full(60, rate))


_FLAT = flat(60, 1.39, noise=0.01)

FIRES = {
    "driven to nothing": _run(_FLAT, 0.05, 10.0),
    "a ruling penalty": _run(decay(60, 0.8, 0.14), 0.4, 0.1, kind="SGD"),
}

SILENT = {
    "usual": _run(_FLAT, 1.1, 0.01),
    "near miss: shrinks and learns": _run(decay(60), 0.05, 10.0),
    "near miss: shrinks for another reason": _run(_FLAT, 0.05, 0.01),
    "near miss: normalisation undoes it": _run(
        decay(60, 0.8, 0.14), 0.4, 0.1, kind="SGD", modules={"1": "BatchNorm1d"}
    ),
    "near miss: a penalty of no weight": _run(decay(60, 80.0, 14.0), 0.4, 0.1, kind="SGD"),
}
