from traindx.analysis.errors.layer_messages import LABEL_SHAPES, label_shapes
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(
    needs=("failure",), suggests=("output-size-mismatch", "wrong-loss-for-task", "shape-mismatch")
)
def check(run: Run) -> Findings:
    """The labels do not have the shape that the loss of Keras compares with the output.

    ## What it detects
    "Shapes (None, 4) and (None, 10) are incompatible", "`target` and `output` must have the same
    shape", "logits and labels must have the same first dimension" and "logits and labels must be
    broadcastable", with what the two shapes say: a last layer with another number of units than
    there are classes, class numbers passed to a loss for one-hot labels, or the reverse.

    ## Why it matters
    The traceback ends in `model.fit`; the two shapes alone say which of the three it is.

    ## What to do
    Give the last layer one unit per class; use `sparse_categorical_crossentropy` for class numbers
    and `categorical_crossentropy` for one-hot labels.

    ## When it is wrong
    Two shapes that are incompatible elsewhere than in the loss are read the same way.
    """
    known = known_error(run, LABEL_SHAPES)
    if known is not None:
        cause, words = label_shapes(known)
        yield finding(known, known.claim(**words), cause=cause)


FIRES = {
    "a last layer for other classes": failed(
        "ValueError: Shapes (None, 4) and (None, 10) are incompatible", "model.fit(x, y)"
    ),
    "class numbers for a loss of one-hot labels": failed(
        "ValueError: Arguments `target` and `output` must have the same shape. Received: "
        "target.shape=(None, 1), output.shape=(None, 10)",
        "model.fit(x, y)",
    ),
    "one-hot labels for a loss of class numbers": failed(
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: logits and labels must have "
        "the same first dimension, got logits shape [250,10] and labels shape [2500]"
    ),
}

SILENT = {
    "near miss: torch's batches of two sizes": failed(
        "ValueError: Expected input batch_size (36) to match target batch_size (4)."
    ),
    "near miss: memory for a tensor of some shape": failed(
        "ResourceExhaustedError: OOM when allocating tensor with shape[256,832,7,7]"
    ),
    "another error": failed("KeyError: 'label'"),
}
