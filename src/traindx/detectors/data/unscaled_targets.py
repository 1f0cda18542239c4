from traindx.analysis.recordings.observations import extreme, terms_in
from traindx.analysis.recordings.predictions import are_raw_targets, is_far_below_target, size_of
from traindx.examples import LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, detector, finding, suggested

CAUSE = "unnormalised-targets"
ENOUGH = 3  # late samples


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Targets are in the thousands or beyond, and late predictions are still far below.

    ## What it detects
    A squared error whose targets have a size of 1000 or more in every sample, while the predictions
    of the later part of training stay below a tenth of it.

    ## Why it matters
    The output layer has to grow by orders of magnitude before anything about the targets can be
    learnt. Adaptive optimizers move each weight by about the learning rate per step, whatever the
    gradient; plain ones diverge at gradients of that size.

    ## What to do
    Train on (y − mean) / std of the training targets, and undo it for the output.

    ## When it is wrong
    Where the predictions have reached the scale of the targets nothing is said.
    """
    for term in terms_in(run, "mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"):
        late = term.late()
        is_far = len(late) >= ENOUGH and all(map(is_far_below_target, late.inputs))
        if not is_far or not are_raw_targets(term):
            continue
        given, onset = late.inputs[-1], late.samples[0].step
        wanted, reached = size_of(given.target), extreme(given.prediction)
        says = f"targets are about {wanted:.3g}, and predictions reach {reached:.3g}"
        cited = late.cite(f"{says} in the last of {late.seen}", size=wanted)
        claim = (
            f"The targets are not normalized: they are about {wanted:.3g}, and late predictions "
            f"reach {reached:.3g}"
        )
        yield finding(claim, suggested(CAUSE), cited, onset=onset)
        return


def _run(wanted: float, reached: float) -> Run:
    given = LossInput(
        "mse_loss", "addmm", Summary(shape=(32, 1), low=0.0, high=reached, mean=reached / 2),
        Summary(shape=(32, 1), mean=wanted, std=wanted / 3),
    )  # fmt: skip
    return recorded(sampled(8, losses=(given,)))


FIRES = {"prices in raw units": _run(2e5, 40.0)}

SILENT = {
    "near miss: wide targets that are reached": _run(2e5, 2.4e5),
    "near miss: targets of a hundred": _run(100.0, 1.0),
    "normalised": _run(0.2, 1.5),
}
