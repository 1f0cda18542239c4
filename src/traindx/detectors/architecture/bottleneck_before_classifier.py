from math import isfinite, log

from traindx.analysis.recordings.observations import late_samples, medians
from traindx.analysis.recordings.owners import NARROW, has_wide_input, keeps_moving
from traindx.analysis.recordings.traces import per_process, traces_of
from traindx.examples import recorded, watched
from traindx.model.recording import LossInput, Parameter, Process, Summary
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

CAUSE = "insufficient-capacity"
MANY = 8  # classes
LEFT = 0.3  # of the loss of a guess, late in training
ENOUGH = 3  # late samples


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """The last layer of a classifier gets two or three features for eight classes or more.

    ## What it detects
    A weight matrix that turns three numbers or fewer into the scores of the eight or more classes
    of the only cross-entropy, in a model that moves and whose loss stays above a third of that of a
    guess.

    ## Why it matters
    All logits lie in a plane: classes differ by their direction only, and the uncertainty between
    any two of them cannot be expressed.

    ## What to do
    Widen the hidden layer to at least the number of classes, usually to several times that.

    ## When it is wrong
    Features of two dimensions are made on purpose, to be drawn; where such a model learns, nothing
    is said. Nor of inputs that are no more than a few numbers themselves.
    """
    late = [s for s in late_samples(process) if isfinite(s.loss)]
    kinds = {(i.loss, i.classes) for s in process.samples for i in s.losses}
    if len(late) < ENOUGH or len(kinds) != 1 or any(len(s.losses) != 1 for s in late):
        return
    loss, classes = next(iter(kinds))
    level = medians(s.loss for s in late)
    if loss not in ("cross_entropy", "nll_loss") or classes < MANY or level < LEFT * log(classes):
        return
    traces = traces_of(process)
    for trace in traces:
        shape = trace.parameter.shape
        is_neck = len(shape) == 2 and shape[0] == classes and shape[1] <= NARROW
        if is_neck and keeps_moving(trace) and has_wide_input(trace, traces):
            says = (
                f"{trace.name} maps {shape[1]} features to {classes} logits; the late loss is "
                f"{level:.3g}, and guessing gives {log(classes):.3g}"
            )
            sample = trace.samples[-1]
            claim = (
                f"A bottleneck of {shape[1]} features precedes {classes} classes, and the "
                f"loss stays at {level / log(classes):.0%} of guessing"
            )
            cited = cite_record(process, sample.line, says, width=shape[1], loss=level)
            yield finding(claim, {CAUSE: Strength.STRONG}, cited, onset=late[0].step)
            return


def _run(
    width: int, *, loss: float = 2.0, classes: int = 14, ratio: float = 5e-3, inputs: int = 24
) -> Run:
    lower = Parameter("fc.weight", (width, inputs), "float32", True, 0)
    upper = Parameter("out.weight", (14, width), "float32", True, 0)
    given = LossInput("cross_entropy", "addmm", Summary(shape=(32, classes)), classes=classes)
    ratios = (ratio, ratio)
    return recorded(
        watched(lower, upper, count=8, loss=loss, losses=(given,), update_ratios=ratios)
    )


FIRES = {"two for fourteen": _run(2)}

SILENT = {
    "wide": _run(64),
    "near miss: two features to draw, and learnt": _run(2, loss=0.2),
    "near miss: few numbers of another layer": _run(2, classes=10),
    "near miss: inputs of two numbers": _run(2, inputs=2),
    "near miss: it does not move": _run(2, ratio=1e-7),
}
