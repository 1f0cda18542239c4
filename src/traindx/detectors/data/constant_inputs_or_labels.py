from math import sqrt

from traindx.analysis.recordings.input_batches import (
    has_constant_inputs,
    is_input_table,
    repeats_one_example,
)
from traindx.analysis.recordings.loss_labels import only_batch_label
from traindx.analysis.recordings.observations import processes_of, spans
from traindx.examples import recorded, sampled
from traindx.model.recording import Activation, LossInput, Process, Sample, Summary
from traindx.registry import Finding, Findings, Run, cite_record, detector, finding

CAUSE = "degenerate-batch"
ENOUGH = 3  # samples
MOST = 0.8  # of the samples
MANY = 5  # samples


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Inputs are constant, or all labels are one class, in the sampled batches.

    ## What it detects
    The floating-point input of the batches, several examples of several values, is one and the same
    number throughout in most samples, or the same for every example; or the labels that the loader
    gives are one class in every sample, and the same class in all of them, while the model has
    more. Inputs that became the same between the loader and the model show in the gradients of a
    first linear layer: that of the weights over that of the bias is then the length of the one
    example, in every sample.

    ## Why it matters
    From a constant nothing can be learnt. A loader that fails silently, a path that matches
    nothing, an integer division that turns pixels into zeros, or a filter that leaves one class
    look like this.

    ## What to do
    Look at one batch as the model gets it: `x.min(), x.max(), y.unique()`.

    ## When it is wrong
    Masks, weights and noise levels that come with a batch may be constant: only the first
    floating-point tensor of a batch counts, and only if no other one varies. Labels of 0 that a
    contrastive loss makes by itself are not the loader's.
    """
    for process in processes_of(run):
        samples = [s for s in process.samples if s.batch]
        if len(samples) < ENOUGH:
            continue
        constant = [s for s in samples if has_constant_inputs(s)]
        if len(constant) >= max(ENOUGH, MOST * len(samples)):
            given = next(b for b in constant[0].batch if is_input_table(b))
            says = f"every input value is {given.low:.4g}"
            if given.std != 0.0:
                says = "all examples of a batch are identical"
            yield _finding(process, constant, f"The inputs are constant: {says}", says)
            return
        repeated = [s for s in samples if repeats_one_example(s)]
        if len(repeated) >= MANY and len(repeated) >= MOST * len(samples):
            says = "the first layer's gradients are those of a batch of identical examples"
            yield _finding(
                process, repeated, f"All examples of a batch are identical: {says}", says
            )
            return
        label = only_batch_label(samples)
        if label is not None:
            says = f"every label is {label}"
            yield _finding(process, samples, f"All labels are of one class: {says}", says)
            return


def _finding(process: Process, samples: list[Sample], claim: str, says: str) -> Finding:
    first = samples[0]
    text = f"{says} in {len(samples)} samples, {spans(samples)}"
    cited = cite_record(process, first.line, text, step=first.step)
    return finding(claim, CAUSE, cited, place=first.place)


def _x(std: float, shape: tuple[int, ...] = (32, 8)) -> Summary:
    return Summary("0", shape, "float32", "cpu", -std, std, 0.0, std)


def _y(low: float, high: float, dtype: str = "int64") -> Summary:
    return Summary("1", (32,), dtype, "cpu", low, high, low, 0.0)


def _run(*batch: Summary, labels: tuple[str, ...] = ("0", "1"), count: int = 5) -> Run:
    given = LossInput("cross_entropy", classes=4, labels=dict.fromkeys(labels, 16))
    return recorded(sampled(count, losses=(given,), batch=batch))


def _graded(ratio: float, *, count: int = 8, is_input: bool = True) -> Run:
    """A first layer of eight inputs of size one, whose gradients have that ratio."""
    shape = (32, 8) if is_input else (32, 16)
    layer = Activation("fc1", "input of addmm", shape, mean=0.6, std=0.8)
    given = {"names": ("fc1.weight", "fc1.bias"), "grad_norms": (0.3 * ratio, 0.3)}
    return recorded(sampled(count, activations=(layer,), batch=(_x(1.0),), **given))


FIRES = {
    "one example for all, made of a batch": _graded(sqrt(8.0)),
    "all zeros": _run(_x(0.0), _y(0, 3)),
    "one class": _run(_x(1.0), _y(2, 2), labels=("2",)),
}

SILENT = {
    "ordinary batches": _run(_x(1.0), _y(0, 3)),
    "near miss: a constant mask beside the inputs": _run(_x(1.0), _x(0.0), _y(0, 3)),
    "near miss: token ids with a constant mask": _run(
        Summary("0", (32, 8), "int64", "cpu", 0, 99, 9.0, 9.0), _x(0.0)
    ),
    "near miss: a contrastive loss makes labels of 0": _run(_x(1.0), labels=("0",)),
    "near miss: gradients of examples that differ": _graded(0.95 * sqrt(8.0)),
    "near miss: a few steps": _graded(sqrt(8.0), count=3),
    "near miss: another layer than the first": _graded(4.0, is_input=False),
    "near miss: one blank batch": _run(_x(0.0), _y(0, 3), count=1),
}
