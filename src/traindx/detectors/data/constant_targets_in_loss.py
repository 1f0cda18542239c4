from traindx.analysis.recordings.loss_labels import only_label, varied_labels
from traindx.analysis.recordings.observations import spans, terms_in
from traindx.examples import LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "degenerate-batch"
SOLVED = 0.02  # of the first loss: one answer for all is learnt to the end within a few steps


@detector(needs=("recording",), suggests=(CAUSE, "class-collapse"))
def check(run: Run) -> Findings:
    """Every label that enters the loss is the same class, while the batches hold labels that vary.

    ## What it detects
    A loss over classes whose targets are one class in every sampled batch, a loss that falls to
    nothing, and a tensor of labels in the batch, within the range of the classes, that varies.

    ## Why it matters
    The model learns to give that one answer, whatever it is shown. The training loss looks perfect
    and means nothing.

    ## What to do
    Print the targets that are passed to the loss: a label that was overwritten, a wrong column, a
    mask or a comparison in the place of the label.

    ## When it is wrong
    Contrastive losses put the right answer first and have the target 0 on purpose; their loss does
    not vanish, and they have far more outputs than the data have classes.
    """
    for term in terms_in(run, "cross_entropy", "nll_loss"):
        label, varied = only_label(term), varied_labels(term)
        first, last = term.samples[0], term.samples[-1]
        if label is None or varied is None or not last.loss < SOLVED * first.loss:
            continue
        sample, part = varied
        there = f"the labels in a batch range from {part.low:g} to {part.high:g}"
        fell = f"the loss fell from {first.loss:.3g} to {last.loss:.3g}"
        yield finding(
            f"The loss gets class {label} as the label of every example, although the data "
            "contain other classes",
            CAUSE,
            term.cite(f"every label passed to the loss is {label}, {spans(term.samples)}", 0),
            cite_record(term.process, sample.line, there, low=part.low, high=part.high),
            cite_record(term.process, last.line, fell, loss=last.loss),
            place=sample.place,
        )
        return


def _run(labels: dict[str, int], *, classes: int = 10, end: float = 0.0, high: float = 9.0) -> Run:
    batch = (Summary("0", (32, 8), "float32"), Summary("1", (32,), "int64", "", 0, high, 4, 2.5))
    loss = LossInput("cross_entropy", classes=classes, labels=labels)
    falling = [2.3, 2.3, *[end] * 4]
    return recorded(sampled(6, loss=lambda i: falling[i], losses=(loss,), batch=batch))


FIRES = {"zeros in the place of labels": _run({"0": 32})}

SILENT = {
    "labels that vary": _run({"0": 12, "1": 20}),
    "near miss: contrast with the first as the right one": _run({"0": 32}, end=1.1),
    "near miss: contrast with a queue": _run({"0": 32}, classes=4097),
    "few examples": _run({"0": 3}),
}
