"""Labels of another shape than what Keras or TensorFlow compares them with."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.errors.layer_messages import LABEL_SHAPES
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import make_failed_run
from traindx.model.findings import Finding
from traindx.model.run import Run
from traindx.registry import detector

Shape = tuple[int | None, ...]


@detector(
    needs=("failure",),
    suggests=("output-size-mismatch", "wrong-loss-for-task", "shape-mismatch"),
)
def check(run: Run) -> Iterator[Finding]:
    """The labels do not have the shape that the loss of Keras compares with the output.

    ## What it detects
    "Shapes (None, 4) and (None, 10) are incompatible", "`target` and `output` must have the same
    shape", "logits and labels must have the same first dimension" and "logits and labels must be
    broadcastable", with what the two shapes say: a last layer with another number of units than
    there are classes, class numbers given to a loss for one-hot labels, or the reverse.

    ## Why it matters
    The traceback ends in `model.fit`; the two shapes alone say which of the three it is.

    ## What to do
    Give the last layer one unit per class; use `sparse_categorical_crossentropy` for class numbers
    and `categorical_crossentropy` for one-hot labels.

    ## When it is wrong
    Two shapes that are incompatible elsewhere than in the loss are read the same way.
    """
    known = known_error(run, LABEL_SHAPES)
    if known is None:
        return
    labels, outputs = _sizes(known["labels"]), _sizes(known["outputs"])
    cause, reason = _told(labels, outputs, is_sparse=known.kind == "class numbers")
    claim = known.claim(output_shape=_text(outputs), label_shape=_text(labels), reason=reason)
    yield finding(known, claim, cause=cause)


def _told(labels: Shape, outputs: Shape, *, is_sparse: bool) -> tuple[str, str]:
    """What two shapes that do not fit say."""
    wide = outputs[-1] if outputs else None
    if is_sparse:
        rows, count = (outputs or (None,))[0], (labels or (None,))[0]
        if rows and count and wide and count == rows * wide and wide > 1:
            return "wrong-loss-for-task", (
                "one-hot labels are given to a loss that takes class numbers; use "
                "categorical_crossentropy"
            )
        return "shape-mismatch", "they are not of the same samples or steps"
    if len(labels) != len(outputs):
        return "shape-mismatch", "a dimension is too many or missing: flatten or pool the output"
    if labels and labels[-1] == 1 and wide and wide > 1:
        return "wrong-loss-for-task", (
            "class numbers are given to a loss for one-hot labels; use "
            "sparse_categorical_crossentropy"
        )
    if labels[:-1] == outputs[:-1] and labels and labels[-1] != wide:
        return "output-size-mismatch", (
            "the last layer has another number of units than the labels have classes"
        )
    return "shape-mismatch", "they differ before the last dimension"


def _sizes(text: str) -> Shape:
    parts = [p.strip() for p in text.split(",") if p.strip()]
    return tuple(int(p) if p.isdecimal() else None for p in parts)


def _text(shape: Shape) -> str:
    return f"[{', '.join('any' if s is None else str(s) for s in shape)}]"


FIRES = {
    "a last layer for other classes": make_failed_run(
        "ValueError: Shapes (None, 4) and (None, 10) are incompatible", "model.fit(x, y)"
    ),
    "class numbers for a loss of one-hot labels": make_failed_run(
        "ValueError: Arguments `target` and `output` must have the same shape. Received: "
        "target.shape=(None, 1), output.shape=(None, 10)",
        "model.fit(x, y)",
    ),
    "one-hot labels for a loss of class numbers": make_failed_run(
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: logits and labels must have "
        "the same first dimension, got logits shape [250,10] and labels shape [2500]"
    ),
}

SILENT = {
    "near miss: torch's batches of two sizes": make_failed_run(
        "ValueError: Expected input batch_size (36) to match target batch_size (4)."
    ),
    "near miss: memory for a tensor of some shape": make_failed_run(
        "ResourceExhaustedError: OOM when allocating tensor with shape[256,832,7,7]"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
