import re

import numpy as np

from traindx.analysis.curves import since
from traindx.analysis.metrics.broken_losses import cite_half_precision
from traindx.analysis.metrics.loss_scales import is_searching
from traindx.examples import Event, decay, join, logged, make_run
from traindx.model.findings import Evidence, cite_event
from traindx.registry import Finding, Findings, Run, cite, detector, finding, suggested

LASTS = 3  # points up to the end, after finite ones or beside a loss of nothing
LASTS_FROM_THE_START = 6  # a gradient scaler may skip the first few steps to find its scale
SETTLED = 100  # steps after which a scaler has found its scale
ALL_INVALID = re.compile(r"(?i)gradients at all steps are invalid")  # ESPnet
CAUSES = suggested(
    moderate="fp16-overflow unstable-operation nan-in-data", weak="padding-in-loss lr-too-high"
)


@detector(needs=("grad_norm|events",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The gradient norm is NaN or infinite up to the end, and the loss does not tell.

    ## What it detects
    A gradient norm that is NaN or infinite from some point on until the end, while the logged loss
    is finite, often exactly 0: loggers that leave NaN out of their mean print 0. A trainer that
    says of a whole epoch that its gradients were invalid counts as well.

    ## Why it matters
    Such a step either is skipped, and the run learns nothing, or turns every weight into NaN. A
    loss of 0.0 beside a NaN gradient is no success.

    ## What to do
    Train in bfloat16 or float32 for a few steps. If the NaN stays, look for a batch without any
    label that counts (all of them ignored), then for log, sqrt and division in the loss.

    ## When it is wrong
    A gradient scaler skips a few steps while it looks for its scale; a few such points at the start
    and single ones that the run survived are left alone.
    """
    norm, loss = run.get("grad_norm"), run.main_loss()
    told = next((e for e in run.events if ALL_INVALID.search(e.text)), None)
    if norm is None and told is not None:
        yield _finding("All gradients of an epoch are NaN or infinite", cite_event(told))
    if norm is None or (loss is not None and not bool(loss.is_finite[-1])):
        return  # a loss that is NaN itself is told by another detector
    onset = since(~norm.is_finite)
    is_nothing = loss is not None and loss.last == 0.0
    is_late = norm.axis == "step" and norm.steps[0] > SETTLED
    least = LASTS if onset or is_nothing or is_late else LASTS_FROM_THE_START
    if len(norm) - onset < least or is_searching(run):
        return
    word = "infinite" if np.isinf(norm.values[onset]) else "NaN"
    evidence = [cite(norm, f"{norm.origin.name} is {word} from {norm.when(onset)} on", onset, -1)]
    if loss is not None and is_nothing:
        evidence.append(cite(loss, f"{loss.origin.name} is logged as 0 at the end", -1))
    half = cite_half_precision(run)
    beside = ", and the loss is logged as 0" if is_nothing else ""
    claim = f"The gradient norm is {word} since {norm.when(onset)}{beside}"
    yield _finding(claim, *evidence, half=half)


def _finding(claim: str, *evidence: Evidence, half: tuple[Evidence, ...] = ()) -> Finding:
    return finding(
        claim,
        CAUSES | (suggested("fp16-overflow") if half else {}),
        *evidence,
        *half,
    )


_NAN = np.full(8, np.nan)

_WARNING = "The gradients at all steps are invalid in this epoch. Something seems wrong."
_SKIPPED = "WARNING: The grad norm is nan. Skipping updating the model."

FIRES = {
    "the trainer says so": make_run(events=[Event("warning", _WARNING, "a", "line 9")]),
    "loss of 0 beside NaN": logged(loss_train=np.zeros(8), grad_norm=_NAN),
    "breaks in the middle": logged(loss_train=decay(60), grad_norm=join(decay(52, 3.0, 1.0), _NAN)),
}

SILENT = {
    "near miss: single steps were left out": logged(
        loss_train=decay(20), events=[Event("warning", _SKIPPED, "a", "line 9")]
    ),
    "near miss: two skipped steps at the start": logged(
        loss_train=decay(20), grad_norm=join([np.inf, np.nan], decay(18, 3.0, 1.0))
    ),
    "near miss: the scaler still looks for its scale": logged(
        loss_train=np.full(8, 2.0),
        grad_norm=np.full(8, np.inf),
        loss_scale=2.0 ** np.arange(32, 24, -1),
    ),
    "the loss is NaN itself": logged(loss_train=_NAN, grad_norm=_NAN),
    "a healthy run": logged(loss_train=decay(60), grad_norm=decay(60, 3.0, 1.0)),
}
