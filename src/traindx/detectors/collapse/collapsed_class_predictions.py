from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from traindx.analysis.recordings.loss_labels import prediction_count
from traindx.analysis.recordings.observations import (
    Term,
    largest_share,
    last_step,
    processes_of,
    spans,
    terms_of,
)
from traindx.examples import recorded, sampled
from traindx.model.recording import Counts, LossInput, Process, Summary
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

LOSSES = ("cross_entropy", "nll_loss", "bce", "bce_with_logits")
ONE = 0.99  # of the predictions of a batch
SPREAD = 0.6  # the largest class must have less, or the majority is a fair answer
SKEWED = 0.8
ENOUGH = 3  # late samples
STEPS = 100  # a fresh network answers with one class for a while
EXAMPLES = 16  # of a batch; in a smaller one a single answer is no surprise
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
    for process in processes_of(run):
        if last_step(process) < STEPS:
            continue
        for term in terms_of(process, *LOSSES):
            found = _finding(process, term.late(process))
            if found is not None:
                yield found
                return


def _finding(process: Process, late: Term) -> Finding | None:
    if len(late) < ENOUGH or not 2 <= late.inputs[0].classes <= MANY_CLASSES:
        return None
    chosen = [largest_share(i.predictions, prediction_count(i)) for i in late.inputs]
    if len({label for label, _ in chosen}) != 1 or min(share for _, share in chosen) < ONE:
        return None
    if min(prediction_count(i) for i in late.inputs) < EXAMPLES:
        return None
    labels = sum((Counter(i.labels) for i in late.inputs), Counter[str]())
    label, share = largest_share(labels)
    if share >= SKEWED or len(labels) < 2:
        return None
    answer = chosen[0][0]
    last = late.samples[-1]
    says = (
        f"class {answer} has {min(s for _, s in chosen):.1%} or more of the predictions in all "
        f"{len(late)} samples, {spans(late.samples)}; of the labels, class {label} has {share:.0%}"
    )
    strength = Strength.STRONG if share < SPREAD else Strength.MODERATE
    suggests = {"class-collapse": strength}
    # what else ends like this, for other findings to decide
    suggests |= dict.fromkeys(("unnormalised-inputs", "lr-too-high"), Strength.WEAK)
    if strength is Strength.MODERATE:
        suggests["class-imbalance"] = Strength.MODERATE
    return finding(
        f"Late in training every input is classified as {answer}",
        suggests,
        cite_record(process, last.line, says, step=float(last.step), share=share),
        strength=strength,
        onset=late.samples[0].step,
        place=last.place,
    )


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
