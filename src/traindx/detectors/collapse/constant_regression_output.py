from dataclasses import replace

from traindx.analysis.recordings.observations import Term, last_step, processes_of, spans, terms_of
from traindx.analysis.recordings.predictions import CONSTANT, is_constant_column
from traindx.examples import recorded, sampled
from traindx.model.recording import Counts, LossInput, Process, Summary
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

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
    for process in processes_of(run):
        if last_step(process) < STEPS:
            continue
        for term in terms_of(process, *LOSSES):
            late = term.late(process)
            if len(late) >= ENOUGH and all(map(is_constant_column, late.inputs)):
                yield _finding(process, late)
                return


def _finding(process: Process, late: Term) -> Finding:
    last, given = late.samples[-1], late.inputs[-1]
    target = given.target.std if given.target is not None else float("nan")
    says = (
        f"predictions vary by less than {CONSTANT:.0%} of the targets in all {len(late)} samples, "
        f"{spans(late.samples)}; the last have a standard deviation of {given.prediction.std:.3g}, "
        f"their targets {target:.3g}"
    )
    return finding(
        f"The model predicts {given.prediction.mean:.4g} for every example",
        {"constant-prediction": Strength.STRONG},
        cite_record(process, last.line, says, step=float(last.step)),
        onset=late.samples[0].step,
        place=last.place,
    )


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
