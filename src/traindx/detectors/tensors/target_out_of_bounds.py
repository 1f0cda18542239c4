from traindx.analysis.errors.culprits import class_count
from traindx.analysis.errors.device_messages import LABELS
from traindx.analysis.errors.messages import causes_in, finding, known_error
from traindx.examples import failed, script
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=causes_in(LABELS))
def check(run: Run) -> Findings:
    """The loss gets a label that is out of range for the model's classes.

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
    known = known_error(run, LABELS)
    if known is None:
        return
    count, note = class_count(run)
    words = {"allowed": f"0 … {count - 1}" if count else "0 … C−1"}
    if known.kind == "label":
        label = known.number("label")
        words["needed"] = str(label + 1)
        words["count"] = str(count) if label == count else ""
    notes = [note] if note is not None and known.message.weak else []
    yield finding(known, known.claim(**words), notes=notes)


FIRES = {
    "one too far": failed(
        "IndexError: Target 10 is out of bounds.",
        "loss = criterion(model(x), y)",
        sources={"train.py": "num_classes = 10\nloss = criterion(model(x), y)\n"},
    ),
    "on a GPU": failed(
        "DeviceAssert: ../aten/src/ATen/native/cuda/Loss.cu:240: "
        "nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion "
        "`t >= 0 && t < n_classes` failed."
    ),
    "outputs without a sigmoid": failed(
        "RuntimeError: all elements of input should be between 0 and 1", "loss = bce(model(x), y)"
    ),
}

SILENT = {
    "near miss: an embedding's index": failed("IndexError: index out of range in self"),
    "no error": script("num_classes = 10\n"),
}
