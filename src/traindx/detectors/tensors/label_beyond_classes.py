"""A label was not a class of the model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Evidence, Finding, Strength, cite_setting, cite_source
from traindx.model import Run, as_number, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import explain, make_failed_run, match_root, number_named

TARGET = re.compile(r"Target (-?\d+) is out of bounds")
RANGE = re.compile(
    r"Class values must be (smaller than num_classes|non-negative)"
    r"|all elements of (?:input|target) should be between 0 and 1"
    r"|cur_target >= 0 && cur_target < n_classes"
)
ASSERTED = re.compile(
    r"t >= 0 && t < n_classes|cur_target >= 0|input_val >= zero && input_val <= one"
    r"|target_val >= zero && target_val <= one"
)
PREDICTED = re.compile(r"elements of input|input_val")  # the model's output, not the label
CLASSES = ("num_classes", "n_classes", "num_labels", "nb_classes", "classes", "nclass")


@detector(
    needs=("failure",),
    suggests=("label-out-of-range", "output-size-mismatch", "loss-expects-probabilities"),
)
def check(run: Run) -> Iterator[Finding]:
    """The loss gets a label that is no class of the model.

    ## What it detects
    "Target 10 is out of bounds", the CUDA assertion `t >= 0 && t < n_classes`, and labels or
    predictions outside of 0 to 1 for a binary cross-entropy. The number of classes is taken from
    the config or source.

    ## Why it matters
    Labels that start at 1, an extra class, or −1 for "unknown" are faults of the data that only
    some batches show.

    ## What to do
    Map the labels to 0 … C−1 where the data are made, with one map for all splits; use
    `ignore_index` for what must not count.

    ## When it is wrong
    If the labels are right, the output layer has too few units.
    """
    hit = match_root(run, TARGET, ASSERTED, RANGE)
    if hit is None:
        return
    failure, found = hit
    if PREDICTED.search(found[0]):
        claim = "A binary cross-entropy that wants probabilities gets outputs outside of 0 to 1"
        yield explain(run, failure, claim, shows="loss-expects-probabilities")
        return
    count, note = _classes(run)
    suggests = {"output-size-mismatch": Strength.WEAK}
    yield explain(
        run,
        failure,
        _claim(found, count),
        shows="label-out-of-range",
        suggests=suggests,
        notes=[note] if note is not None else [],
    )


def _claim(found: re.Match[str], count: int | None) -> str:
    allowed = f"0 … {count - 1}" if count else "0 … C−1"
    if found.re is TARGET:
        label = int(found[1])
        if label == -1:
            return f"Label −1 reaches the loss, where the classes are {allowed}: a mark for 'none'"
        if label < 0:
            return f"Label {label} reaches the loss, where the classes are {allowed}"
        if count is not None and label == count:
            return (
                f"Label {label} reaches the loss, where {count} classes are {allowed}: one too far"
            )
        return f"Label {label} reaches the loss: it needs at least {label + 1} outputs"
    if "zero" in found[0] or "between 0 and 1" in found[0]:
        return "A binary cross-entropy gets labels outside of 0 to 1"
    return f"A label outside of the classes {allowed} reaches the loss"


def _classes(run: Run) -> tuple[int | None, Evidence | None]:
    setting = run.config.find(*CLASSES)
    value = as_number(setting.value) if setting is not None else None
    if setting is not None and value is not None:
        return int(value), cite_setting(setting)
    number = number_named(project_of(run), *CLASSES)
    if number is None:
        return None, None
    count, module, node = number
    return count, cite_source(module.path, node.lineno, f"the number of classes is {count}")


FIRES = {
    "one too far": make_failed_run(
        "IndexError: Target 10 is out of bounds.",
        "loss = criterion(model(x), y)",
        sources={"train.py": "num_classes = 10\nloss = criterion(model(x), y)\n"},
    ),
    "on a GPU": make_failed_run(
        "DeviceAssert: ../aten/src/ATen/native/cuda/Loss.cu:240: "
        "nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion "
        "`t >= 0 && t < n_classes` failed."
    ),
}

FIRES["outputs without a sigmoid"] = make_failed_run(
    "RuntimeError: all elements of input should be between 0 and 1", "loss = bce(model(x), y)"
)

SILENT = {
    "near miss: an embedding's index": make_failed_run("IndexError: index out of range in self"),
    "no error": make_run(sources={"train.py": "num_classes = 10\n"}),
}
