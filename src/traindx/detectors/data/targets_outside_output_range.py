from traindx.analysis.recordings.observations import is_sound, operation, terms_in
from traindx.analysis.recordings.predictions import OUTPUT_RANGES, targets_exceed_range
from traindx.examples import recorded, sampled
from traindx.model.recording import LossInput, Summary
from traindx.registry import Findings, Run, detector, finding

CAUSE = "unnormalised-targets"
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
ENOUGH = 3  # samples


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A sigmoid or tanh ends the model, and the targets go far beyond its range.

    ## What it detects
    A squared, absolute or Huber loss between the output of a sigmoid, softmax or tanh and targets
    that reach half of its range beyond it, and spread wider than half of it, in every sample.

    ## Why it matters
    No weights can make such an output meet such a target. The output is driven to its bound, where
    it has no gradient, and the loss stays at what is left over.

    ## What to do
    Scale the targets into the range (pixels by 255 into 0 … 1, by 127.5 and minus 1 for a tanh), or
    take the activation off the last layer.

    ## When it is wrong
    Targets of which a few are outliers spread less than this. What is rescaled after the activation
    is not taken for its output.
    """
    for term in terms_in(run, *LOSSES):
        sound = [given for given in term.inputs if is_sound(given)]
        if len(sound) < ENOUGH or not all(map(targets_exceed_range, sound)):
            continue
        given = term.inputs[0]
        made, target = operation(given.producer), given.target or Summary()
        low, high = OUTPUT_RANGES[made]
        says = (
            f"in all {term.seen}, the {made} is limited to {low:g} … {high:g} and the targets of "
            f"{given.loss} are {target.low:.4g} … {target.high:.4g}"
        )
        claim = (
            f"The targets reach {max(target.high, -target.low):.4g}, but the output {made} is "
            f"limited to {low:g} … {high:g}"
        )
        yield finding(claim, CAUSE, term.cite(says, 0), place=term.samples[0].place)
        return


def _run(
    high: float, std: float, producer: str = "sigmoid", reached: float = 0.9, count: int = 6
) -> Run:
    given = LossInput(
        "mse_loss", producer, Summary(shape=(32, 64), low=0.1, high=reached),
        Summary(shape=(32, 64), low=0.0, high=high, std=std),
    )  # fmt: skip
    return recorded(sampled(count, losses=(given,)))


FIRES = {
    "pixels against a sigmoid": _run(255.0, 80.0),
    "sixteen grey levels against a tanh": _run(16.0, 6.0, "tanh"),
}

SILENT = {
    "scaled": _run(1.0, 0.3),
    "near miss: a few outliers": _run(4.0, 0.3),
    "near miss: standardised targets against a tanh": _run(3.0, 1.0, "tanh"),
    "near miss: a linear output": _run(255.0, 80.0, "addmm"),
    "near miss: the output is rescaled": _run(255.0, 80.0, "mul", reached=250.0),
}
