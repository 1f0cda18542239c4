from traindx.analysis.recordings.observations import operation, terms_in
from traindx.analysis.recordings.predictions import is_clipped
from traindx.examples import LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, Strength, detector, finding, suggested

CAUSE = "constant-prediction"
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "bce", "binary_cross_entropy")
EXPLAINED = ("frozen-parameters", "detached-loss", "degenerate-batch")  # the gradient is zero
ENOUGH = 5  # samples


@detector(needs=("recording",), suggests=(CAUSE, "dead-relu"))
def check(run: Run) -> Findings:
    """Every prediction lies at the bound of the ReLU or clamp that made it, in every sample.

    ## What it detects
    A loss whose prediction comes out of an operation that clips, and is one and the same value for
    every example of every sample, from the first step to the last, while the targets vary.

    ## Why it matters
    Outside its bounds a clipping operation has no gradient: nothing below it is trained.

    ## What to do
    Take the ReLU or the clamp off the output, or use one that has a slope everywhere (softplus for
    positive values, a sigmoid for a range); clip only what is shown or sampled.

    ## When it is wrong
    Outputs that reach the bound for some examples are usual; a single value that differs, in any
    sample, silences this.
    """
    for term in terms_in(run, *LOSSES):
        values = {given.prediction.low for given in term.inputs}
        if len(term) < ENOUGH or not all(map(is_clipped, term.inputs)) or len(values) != 1:
            continue
        given = term.inputs[0]
        made, bound = operation(given.producer), f"{given.prediction.low:.4g}"
        says = f"the {made} before {given.loss} gives {bound} for every example in all {term.seen}"
        yield finding(
            f"The {made} at the output clips every prediction to {bound}",
            suggested(CAUSE, weak="dead-relu"),
            term.cite(says, 0),
            shows=CAUSE,
            against=dict.fromkeys(EXPLAINED, Strength.STRONG),
            place=term.samples[0].place,
        )
        return


def _run(*values: float, producer: str = "relu", width: float = 0.0, target: float = 1.0) -> Run:
    def given(i: int) -> tuple[LossInput]:
        prediction = Summary(shape=(32, 2), low=values[i], high=values[i] + width)
        return (LossInput("mse_loss", producer, prediction, Summary(shape=(32, 2), std=target)),)

    return recorded(sampled(len(values), losses=given))


FIRES = {
    "a dead output": _run(*[0.0] * 8),
    "at the upper bound": _run(*[1.0] * 8, producer="clamp"),
}

SILENT = {
    "near miss: some outputs are above": _run(*[0.0] * 8, width=2.0),
    "near miss: alive in one sample": _run(*[0.0] * 7, 0.3),
    "near miss: one value of a linear layer": _run(*[0.0] * 8, producer="addmm"),
    "near miss: the targets are one value too": _run(*[0.0] * 8, target=0.0),
    "near miss: too few samples": _run(0.0, 0.0),
}
