"""The batches contain only one input value, or only one label."""

from math import hypot, sqrt

from traindx.analysis.recordings.observations import is_integer, processes_of, rows, spans
from traindx.examples import recorded, sampled
from traindx.model.findings import Finding, cite_record, finding
from traindx.model.recording import Activation, LossInput, Process, Sample, Summary
from traindx.registry import Findings, Run, detector

CAUSE = "degenerate-batch"
ENOUGH = 3  # samples
EXAMPLES = 8  # of a batch
MOST = 0.8  # of the samples
LOSSES = ("cross_entropy", "nll_loss")
EXACT = 1e-3  # numbers that are the same up to rounding; by chance they differ by a tenth or more
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
        constant = [s for s in samples if _has_constant_inputs(s)]
        if len(constant) >= max(ENOUGH, MOST * len(samples)):
            given = next(b for b in constant[0].batch if _is_input(b))
            says = f"every input value is {given.low:.4g}"
            if given.std != 0.0:
                says = "all examples of a batch are identical"
            yield _finding(process, constant, f"The inputs are constant: {says}", says)
            return
        repeated = [s for s in samples if _gives_one_example(s)]
        if len(repeated) >= MANY and len(repeated) >= MOST * len(samples):
            says = "the first layer's gradients are those of a batch of identical examples"
            yield _finding(
                process, repeated, f"All examples of a batch are identical: {says}", says
            )
            return
        label = _only_label(samples)
        if label is not None:
            says = f"every label is {label}"
            yield _finding(process, samples, f"All labels are of one class: {says}", says)
            return


def _is_input(summary: Summary) -> bool:
    is_table = len(summary.shape) > 1 and rows(summary.shape) >= EXAMPLES
    return "float" in summary.dtype and is_table and summary.shape[1:] != (1,)


def _has_constant_inputs(sample: Sample) -> bool:
    floats = [b for b in sample.batch if _is_input(b)]
    has_ids = any(is_integer(b) and len(b.shape) > 1 for b in sample.batch)
    is_constant = all(not b.nonfinite and 0.0 in (b.std, b.spread) for b in floats)
    return bool(floats) and not has_ids and is_constant


def _gives_one_example(sample: Sample) -> bool:
    """Tell whether a linear layer that takes the batch gets the same row for every example.

    Its gradient is a sum over examples of outer products, and that of its bias the sum of the left
    sides: with one right side for all, their norms differ by the norm of that one.
    """
    shapes = {b.shape for b in sample.batch if _is_input(b) and len(b.shape) == 2}
    grads = dict(zip(sample.names, sample.grad_norms, strict=False))
    layers = [a for a in sample.activations if a.op == "input of addmm" and a.shape in shapes]
    if len(layers) != 1:
        return False
    of_weight, of_bias = (grads.get(f"{layers[0].name}.{n}") or 0.0 for n in ("weight", "bias"))
    length = sqrt(layers[0].shape[1]) * hypot(layers[0].mean, layers[0].std)
    is_known = of_bias > 0.0 and length > 0.0
    return is_known and abs(of_weight / of_bias / length - 1.0) < EXACT


def _only_label(samples: list[Sample]) -> str | None:
    """Return the one label that the loader gave in all samples."""
    found: set[str] = set()
    for sample in samples:
        losses = [i for i in sample.losses if i.loss in LOSSES]
        if len(sample.losses) != 1 or not losses or losses[0].classes < 2:
            return None
        given = [b for b in sample.batch if is_integer(b) and len(b.shape) == 1]
        if len(given) != 1 or rows(given[0].shape) < EXAMPLES or given[0].low != given[0].high:
            return None
        found |= set(losses[0].labels)
        if set(losses[0].labels) != {str(int(given[0].low))}:
            return None
    return next(iter(found)) if len(found) == 1 else None


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
