from collections.abc import Mapping
from dataclasses import replace

from traindx.analysis.recordings.loss_labels import one_late_answer
from traindx.analysis.recordings.observations import largest_share, last_step, terms_in
from traindx.examples import Counts, LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, detector, finding, suggested

LOSSES = ("cross_entropy", "nll_loss", "bce", "bce_with_logits")
SPREAD = 0.6  # the largest class must have less, or the majority is a fair answer
SKEWED = 0.8
ENOUGH = 3  # late samples
STEPS = 100  # a fresh network answers with one class for a while
MANY_CLASSES = 1000  # vocabularies: the most frequent word is the first thing to be learnt


@detector(
    needs=("recording",),
    suggests=("class-collapse", "class-imbalance", "unnormalised-inputs", "lr-too-high"),
)
def check(run: Run) -> Findings:
    """Nearly all predictions of the late batches are one class, while the labels are spread.

    ## What it detects
    In every sample of the later part of training, 99 % or more of the largest logits belong to the
    same class, although the labels of these batches are spread over several.

    ## Why it matters
    The output does not depend on the input. The accuracy is the share of one class.

    ## What to do
    Compare the outputs for two very different batches. If they differ a little, the model has
    learnt the prior: weight the loss, or lower the learning rate. If they are equal, the input
    is lost.

    ## When it is wrong
    The first hundred steps, batches of fewer than 16 examples, vocabularies, and labels of which
    one class has the majority are left alone or judged mildly.
    """
    for term in terms_in(run, *LOSSES):
        late = term.late()
        is_long = last_step(term.process) >= STEPS and len(late) >= ENOUGH
        if not is_long or not 2 <= late.inputs[0].classes <= MANY_CLASSES:
            continue
        answered = one_late_answer(late)
        label, share = largest_share(late.labels())
        if answered is None or share >= SKEWED or len(late.labels()) < 2:
            continue
        answer, least = answered
        says = (
            f"class {answer} has {least:.1%} or more of the predictions in all {late.seen}; of the "
            f"labels, class {label} has {share:.0%}"
        )
        guesses = suggested("class-collapse", weak="unnormalised-inputs lr-too-high")
        if share >= SPREAD:
            guesses |= suggested(moderate="class-collapse class-imbalance")
        yield finding(
            f"Late in training every input is classified as {answer}",
            guesses,
            late.cite(says, share=share),
            strength=guesses["class-collapse"],
            onset=late.samples[0].step,
            place=late.samples[-1].place,
        )
        return


def _run(
    predictions: Mapping[str, int], labels: Mapping[str, int], *, steps: int = 400, classes: int = 4
) -> Run:
    rows = sum(labels.values())
    given = LossInput(
        "cross_entropy", "addmm", Summary(shape=(rows, classes)), classes=classes,
        labels=labels, predictions=predictions,
    )  # fmt: skip
    process = sampled(9, step=lambda i: steps * i // 8, losses=(given,))
    return recorded(replace(process, counts=Counts(20, steps=steps)))


_EVEN = {"0": 16, "1": 17, "2": 15, "3": 16}

FIRES = {
    "one of four": _run({"2": 64}, _EVEN),
    "a mild majority": _run({"0": 64}, {"0": 44, "1": 20}),
}

SILENT = {
    "two classes are predicted": _run({"2": 60, "1": 4}, _EVEN),
    "near miss: the first steps": _run({"2": 64}, _EVEN, steps=60),
    "near miss: labels that are really imbalanced": _run({"0": 64}, {"0": 60, "1": 4}),
    "near miss: tiny batches": _run({"0": 4}, {"0": 2, "1": 2}),
    "near miss: a vocabulary": _run({"2": 64}, _EVEN, classes=50257),
}
