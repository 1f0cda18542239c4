from traindx.analysis.metrics.learning_rates import is_rate_constant
from traindx.analysis.metrics.objective import stands_still
from traindx.analysis.recordings.observations import explains_targets
from traindx.analysis.recordings.traces import told_once, traces_of
from traindx.analysis.recordings.weight_updates import update_ratios, uses_only
from traindx.examples import Floats, decay, flat, join, recorded, watched, weights
from traindx.model.recording import Process
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

SMALL = 1e-5  # of the weights' norm; a thousand such steps change a hundredth
NOTHING = 1e-6  # of it: a thousand such steps change a thousandth
ENOUGH = 4  # samples
POINTS = 30  # of the loss
LEARNT = 0.05  # of the starting loss
ADAPTIVE = ("adam", "lion", "rmsprop", "lamb", "adafactor")  # the gradient's size cancels out


@detector(needs=("recording", "loss"), suggests=("lr-too-low",))
def check(run: Run) -> Findings:
    """No step of the whole run changes the weights by 1e-5, and the loss stays where it is.

    ## What it detects
    The change of the weight matrices per step, relative to their norm: its largest value over all
    samples is below a hundred-thousandth, in a run whose loss gains less than 5 %.

    ## Why it matters
    The run would need many times its steps to get anywhere.

    ## What to do
    Raise the learning rate tenfold until a step changes the weights by about a thousandth.

    ## When it is wrong
    Late in a schedule small steps are healthy, so the largest step of the run counts. A model that
    is already trained barely moves as well, and so does the beginning of a warm-up or the end of a
    decay. An optimizer of Adam's kind takes steps of the size of the learning rate whatever the
    gradient, so with one of these and a rate that never changed it shows the cause, unless the
    targets were explained from the start; elsewhere it only supports what the loss shows.
    """
    if stands_still(run, POINTS, LEARNT):
        yield from told_once(run, lambda process: _look(run, process))


def _look(run: Run, process: Process) -> Findings:
    traces = [t for t in traces_of(process) if t.is_owned and t.is_matrix and t.has_gradient]
    ratios = update_ratios(traces, max)
    if len(ratios) < ENOUGH:
        return
    sample, largest = max(ratios, key=lambda pair: pair[1])
    if not 0.0 < largest < SMALL:
        return
    is_fresh = not explains_targets(process)
    is_all_by_rate = uses_only(process, *ADAPTIVE) and is_rate_constant(run) and is_fresh
    says = f"the largest sampled update, at step {sample.step}, is {largest:.1e} of the norm"
    yield finding(
        f"Weight updates are too small, at most {largest:.0e} of the weights' norm",
        {"lr-too-low": Strength.STRONG if largest < NOTHING else Strength.MODERATE},
        cite_record(process, sample.line, says, step=sample.step, ratio=largest),
        strength=Strength.MODERATE,
        onset=ratios[0][0].step,
        shows="lr-too-low" if is_all_by_rate else None,
        is_symptom=is_all_by_rate,
    )


def _run(loss: Floats, *ratios: float) -> Run:
    process = watched(
        *weights("0.weight", "2.weight"), count=len(ratios),
        update_ratios=lambda i: (ratios[i], ratios[i] / 2),
    )  # fmt: skip
    return recorded(process, loss_train=loss)


_FLAT = flat(60, 2.3, noise=0.005)

FIRES = {"a ten-millionth": _run(_FLAT, *[1e-7] * 6)}

SILENT = {
    "usual steps": _run(_FLAT, *[1e-3] * 6),
    "near miss: small late in a schedule": _run(_FLAT, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
    "near miss: small, and learning": _run(join(decay(60)), *[1e-7] * 6),
}
