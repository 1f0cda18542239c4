"""All labels that reach the loss are of one class."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.recordings.observations import Term, is_integer, processes_of, spans, terms_of
from traindx.examples import recorded
from traindx.model.findings import Evidence, Finding, Strength, at, cite_record
from traindx.model.recording import LossInput, Process, Sample, Summary
from traindx.model.run import Run
from traindx.registry import detector

CAUSE = "degenerate-batch"
ENOUGH = 5  # samples
EXAMPLES = 100
SOLVED = 0.02  # of the first loss: one answer for all is learnt to the end within a few steps
WIDTH = 4  # outputs per class that the data name; contrast with a queue has thousands


@detector(needs=("recording",), suggests=(CAUSE, "class-collapse"))
def check(run: Run) -> Iterator[Finding]:
    """Every label that enters the loss is the same class, while the batches hold labels that vary.

    ## What it detects
    A loss over classes whose targets are one class in every sampled batch, a loss that falls to
    nothing, and a tensor of labels in the batch, within the range of the classes, that varies.

    ## Why it matters
    The model learns to give that one answer, whatever it is shown. The training loss looks perfect
    and means nothing.

    ## What to do
    Print what the loss is given: a label that was overwritten, a wrong column, a mask or a
    comparison in the place of the label.

    ## When it is wrong
    Contrastive losses put the right answer first and have the target 0 on purpose; their loss does
    not vanish, and they have far more outputs than the data have classes.
    """
    for process in processes_of(run):
        for term in terms_of(process, "cross_entropy", "nll_loss"):
            label = _only_label(term)
            varied = _varied(term)
            if label is None or varied is None or not _is_solved(term):
                continue
            yield _finding(process, term, label, varied)
            return


def _only_label(term: Term) -> str | None:
    classes = {c for i in term.inputs for c in i.labels}
    examples = sum(n for i in term.inputs for n in i.labels.values())
    is_seen = len(term) >= ENOUGH and examples >= EXAMPLES and term.inputs[0].classes > 1
    return next(iter(classes)) if is_seen and len(classes) == 1 else None


def _varied(term: Term) -> tuple[Sample, Summary] | None:
    """A tensor of the batch that looks like the labels of these classes and is not constant."""
    for sample, given in term.pairs():
        for part in sample.batch:
            is_labels = is_integer(part) and part.low >= 0 and part.high < given.classes
            is_alike = given.target is None or part.shape[:1] == given.target.shape[:1]
            fits = given.classes <= WIDTH * (part.high + 1)
            if is_labels and is_alike and len(part.shape) == 1 and part.std > 0 and fits:
                return sample, part
    return None


def _is_solved(term: Term) -> bool:
    first, last = term.samples[0].loss, term.samples[-1].loss
    return last < SOLVED * first


def _finding(process: Process, term: Term, label: str, varied: tuple[Sample, Summary]) -> Finding:
    sample, part = varied
    last = term.samples[-1]
    says = f"every label that the loss was given is {label}, {spans(term.samples)}"
    there = f"the labels of a batch go from {part.low:g} to {part.high:g}"
    fell = f"the loss fell from {term.samples[0].loss:.3g} to {last.loss:.3g}"
    evidence: tuple[Evidence, ...] = (
        cite_record(process, term.samples[0].line, says, step=float(term.samples[0].step)),
        cite_record(process, sample.line, there, low=part.low, high=part.high),
        cite_record(process, last.line, fell, loss=last.loss),
    )
    return Finding(
        claim=f"The loss is given class {label} for every example, though the data have others",
        strength=Strength.STRONG,
        evidence=evidence,
        shows=CAUSE,
        is_symptom=True,
        onset=float(term.samples[0].step),
        location=at(sample.place),
    )


def _run(labels: dict[str, int], *, classes: int = 10, end: float = 0.0, high: float = 9.0) -> Run:
    batch = (Summary("0", (32, 8), "float32"), Summary("1", (32,), "int64", "", 0, high, 4, 2.5))
    loss = LossInput("cross_entropy", classes=classes, labels=labels)
    samples = (
        Sample(i + 3, i * 10, loss=2.3 if i < 2 else end, losses=(loss,), batch=batch)
        for i in range(6)
    )
    return recorded(Process(samples=tuple(samples)))


FIRES = {"zeros in the place of labels": _run({"0": 32})}

SILENT = {
    "labels that vary": _run({"0": 12, "1": 20}),
    "near miss: contrast with the first as the right one": _run({"0": 32}, end=1.1),
    "near miss: contrast with a queue": _run({"0": 32}, classes=4097),
    "few examples": _run({"0": 3}),
}
