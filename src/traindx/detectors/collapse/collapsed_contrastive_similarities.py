from dataclasses import replace
from math import exp, log

from traindx.analysis.recordings.contrast import are_alike, late_similarities, point_apart
from traindx.analysis.recordings.observations import last_step, terms_in
from traindx.examples import Activation, Counts, LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, detector, finding, suggested

CAUSE = "representation-collapse"
ENOUGH = 3  # late samples
STEPS = 100  # fresh embeddings are alike
FEW_STEPS = 30  # where they are seen to differ


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The similarities of a batch are all the same, and the contrastive loss stays at chance.

    ## What it detects
    A cross-entropy over a square of similarities, each row with a label of its own, whose logits
    differ by less than a tenth in every late sample, while gradients flow and the loss stays at the
    logarithm of the batch size.

    ## Why it matters
    The loss cannot tell a pair from strangers: the embeddings are all alike, or a temperature far
    too high makes their differences vanish.

    ## What to do
    Print the standard deviation of the normalised embeddings. If it is near 0, look for what makes
    them equal; if it is not, lower the temperature (0.05 to 0.5 is usual).

    ## When it is wrong
    The first hundred steps are left alone, unless the vectors that are compared are seen to point
    everywhere: then no training helps. Networks in which gradients fade or are not there at all
    have another fault.
    """
    for term in terms_in(run, "cross_entropy"):
        late, steps = late_similarities(term), last_step(term.process)
        if len(late) < ENOUGH or not all(are_alike(s, i) for s, i in late.pairs()):
            continue
        are_apart = all(point_apart(s, i) for s, i in late.pairs())
        if steps < FEW_STEPS or (steps < STEPS and not are_apart):
            continue
        last, classes = late.samples[-1], late.inputs[-1].classes
        ratio = exp(max(i.prediction.high - i.prediction.low for i in late.inputs))
        says = (
            f"in all {late.seen}, the likeliest of all pairs is at most {ratio:.3g} times as "
            f"likely as the least; the loss is {last.loss:.4g}; random guessing among {classes} "
            f"has {log(classes):.4g}"
        )
        what = "The temperature is far too high" if are_apart else "The embeddings collapse"
        then = "every example is as similar to all others of its batch as to its positive pair"
        onset, cited = late.samples[0].step, late.cite(says)
        yield finding(f"{what}: {then}", suggested(CAUSE), cited, onset=onset, place=last.place)
        return


def _run(
    width: float, *, loss: float = 4.15, steps: int = 400, low_grad: float = 1e-4,
    classes: int = 64, is_labelled: bool = False, masked: int = 0, spread: float = 0.05,
) -> Run:  # fmt: skip
    shape = (64, classes)
    given = LossInput(
        "cross_entropy",
        "div",
        Summary(shape=shape, low=-4.16 - width / 2, high=-4.16 + width / 2, nonfinite=masked),
        Summary(shape=(64,)),
        classes=classes,
        labels={str(i): 8 if is_labelled else 1 for i in range(8 if is_labelled else 64)},
    )
    vectors = Activation("projector", "input of mm", (64, 16), mean=0.01, std=spread)
    process = sampled(
        9, step=lambda i: steps * i // 8, loss=loss, names=("",) * 3, activations=(vectors,),
        grad_norms=(low_grad, low_grad, 1e-4), losses=(given,),
    )  # fmt: skip
    return recorded(replace(process, counts=Counts(20, steps=steps)))


FIRES = {
    "all alike": _run(0.02),
    "the similarity to itself is masked": _run(0.02, masked=64),
    "a temperature far too high, in a short run": _run(0.02, steps=60, spread=0.25),
}

SILENT = {
    "pairs stand out": _run(6.0, loss=1.2),
    "near miss: at chance, and similarities differ": _run(1.5),
    "near miss: the first steps": _run(0.02, steps=60),
    "near miss: the mask takes more than itself": _run(0.02, masked=900),
    "near miss: the gradient fades": _run(0.0, low_grad=1e-13),
    "near miss: a classifier whose labels repeat": _run(0.02, is_labelled=True),
    "near miss: a classifier with fewer classes": _run(0.02, classes=10),
}
