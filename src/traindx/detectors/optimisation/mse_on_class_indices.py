from dataclasses import replace
from typing import Any

from traindx.analysis.recordings.observations import operation, summary_words
from traindx.analysis.recordings.predictions import is_class_number, output_count
from traindx.analysis.recordings.traces import latest_models, per_process
from traindx.examples import recorded, sampled
from traindx.model.recording import LossInput, Model, Parameter, Process, Summary
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "wrong-loss-for-task"
AMOUNTS = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
CLASSES = 3  # with two, labels of 0 and 1 are amounts as well
ENOUGH = 3  # samples


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """A squared or absolute error compares the largest of several outputs with class numbers.

    ## What it detects
    A regression loss whose prediction is the maximum over outputs and whose targets are whole
    numbers from 0 on, as many as the last layer has outputs and as the integer labels of the batch
    have values.

    ## Why it matters
    The value of the largest output says nothing about which output it is: the loss falls while the
    classes are never separated. Class 9 is not nine times class 1.

    ## What to do
    `nn.CrossEntropyLoss()(outputs, labels)` with all outputs and integer labels.

    ## When it is wrong
    Regression to an age or a count through the expected value of many outputs is a method of its
    own; it takes a sum, no maximum.
    """
    found = [(s, i) for s in process.samples for i in s.losses if i.loss in AMOUNTS]
    odd = [(s, i) for s, i in found if is_class_number(s, i)]
    if len(odd) < ENOUGH or len(odd) < len(found) / 2:
        return
    classes = int(max(i.target.high for _, i in odd if i.target is not None)) + 1
    heads = [output_count(m) for m in latest_models(process)]
    if classes < CLASSES or classes not in heads:
        return
    sample, given = odd[-1]
    told = summary_words(given.target) if given.target is not None else ""
    says = f"{given.loss} compares the {operation(given.producer)} of the outputs with {told}"
    yield finding(
        f"A regression loss ({given.loss}) fits the maximum of {classes} outputs to class indices",
        CAUSE,
        cite_record(process, sample.line, says, step=float(sample.step)),
        onset=odd[0][0].step,
        place=sample.place,
    )


_IMAGES = Summary("0", (50, 1, 8, 8), "float32", "cpu", 0.0, 1.0)
_LABELS = Summary("1", (50,), "int64", "cpu", 0.0, 9.0, 4.5, 2.8, distinct=10)
_TARGET = replace(_LABELS, name="target", dtype="float32")


def _run(producer: str = "max", outputs: int = 10, **target: Any) -> Run:
    told = replace(_TARGET, **target)
    given = LossInput("mse_loss", producer, Summary(shape=(50,), low=0.0, high=8.0), told)
    process = sampled(5, losses=(given,), batch=(_IMAGES, _LABELS))
    model = Model(1, type="Net", parameters=(Parameter("fc.weight", (outputs, 64)),))
    return recorded(replace(process, models=(model,)))


FIRES = {"squared error on the number of the class": _run()}

SILENT = {
    "near miss: an expected value over ages": _run(producer="sum"),
    "near miss: values that are no classes": _run(high=7.3, distinct=50),
    "near miss: one output": _run(outputs=1),
}
