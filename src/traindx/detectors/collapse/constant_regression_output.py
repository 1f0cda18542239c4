from dataclasses import replace

from traindx.analysis.recordings.observations import last_step, terms_in
from traindx.analysis.recordings.predictions import CONSTANT, is_constant_column
from traindx.examples import Counts, LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, detector, finding, suggested

LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
ENOUGH = 3  # late samples
STEPS = 100  # a fresh network answers with its bias for a while


@detector(needs=("recording",), suggests=("constant-prediction",))
def check(run: Run) -> Findings:
    """Predictions of the late batches do not vary, while their targets do.

    ## What it detects
    A regression with one output whose predictions, in every sample of the later part of training,
    vary by less than a hundredth of what the targets vary.

    ## Why it matters
    The output does not depend on the input: the model has learnt the mean of the targets.

    ## What to do
    Check the shapes of prediction and target, then whether the input reaches the output: dead or
    saturated units, an input that is constant, an output layer that alone is trained.

    ## When it is wrong
    Where the inputs tell nothing about the targets the mean is the best answer. The first hundred
    steps, and outputs of several columns, are left alone.
    """
    for term in terms_in(run, *LOSSES):
        late = term.late()
        is_long = last_step(term.process) >= STEPS and len(late) >= ENOUGH
        if not is_long or not all(map(is_constant_column, late.inputs)):
            continue
        given, onset = late.inputs[-1], late.samples[0].step
        target = given.target.std if given.target is not None else float("nan")
        says = (
            f"predictions vary by less than {CONSTANT:.0%} of the targets in all {late.seen}; the "
            f"last have a standard deviation of {given.prediction.std:.3g}, their targets "
            f"{target:.3g}"
        )
        claim = f"The model predicts {given.prediction.mean:.4g} for every example"
        place, cause = late.samples[-1].place, suggested("constant-prediction")
        yield finding(claim, cause, late.cite(says), onset=onset, place=place)
        return


def _run(
    predicted: float, wanted: float, *, steps: int = 400, columns: int = 1, distinct: int = 32
) -> Run:
    shape = (32, columns)
    given = LossInput(
        "mse_loss", "addmm", Summary(shape=shape, mean=5.0, std=predicted),
        Summary(shape=shape, mean=5.0, std=wanted, distinct=distinct),
    )  # fmt: skip
    process = sampled(9, step=lambda i: steps * i // 8, losses=(given,))
    return recorded(replace(process, counts=Counts(20, steps=steps)))


FIRES = {"the mean for all": _run(1e-5, 2.0)}

SILENT = {
    "varies as its targets": _run(1.8, 2.0),
    "near miss: a weak signal": _run(0.1, 2.0),
    "near miss: targets are constant too": _run(0.0, 0.0, distinct=1),
    "near miss: real or fake, as a GAN is told": _run(0.001, 0.5, distinct=2),
    "near miss: the first steps": _run(1e-5, 2.0, steps=40),
    "near miss: a small offset and wide targets over many columns": _run(1e-5, 2.0, columns=6),
}
