from traindx.analysis.errors.checkpoint_messages import (
    MISMATCHED_TENSOR,
    UNMATCHED_SHAPES,
    shape_words,
)
from traindx.analysis.errors.culprits import explain
from traindx.analysis.errors.messages import causes_in, finding, known_error, occurrences
from traindx.examples import failed
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("failure",), suggests=(*causes_in(UNMATCHED_SHAPES), "vocabulary-mismatch"))
def check(run: Run) -> Findings:
    """A checkpoint holds tensors of other shapes than the model, or another optimizer's state.

    ## What it detects
    "size mismatch for fc.weight: copying a param with shape …", with both shapes and the dimension
    that differs, and an optimizer state for another set of parameters.

    ## Why it matters
    The file belongs to another configuration: other classes, vocabulary, width or length.
    `strict=False` does not forgive shapes.

    ## What to do
    Build the model from the configuration saved with the file; replace the head after loading.

    ## When it is wrong
    For transfer learning the new head is meant to differ; load the rest without it.
    """
    known = known_error(run, UNMATCHED_SHAPES)
    if known is None:
        return
    if known.kind == "optimizer":
        yield finding(known)
        return
    count = occurrences(known.failure.message, MISMATCHED_TENSOR)
    more = f", and {count - 1} more tensors differ" if count > 1 else ""
    claim = known.claim(**shape_words(known)) + more
    is_vocabulary = known["word"] and known.shape("saved")[1:] == known.shape("current")[1:]
    guesses = {"vocabulary-mismatch": Strength.MODERATE} if is_vocabulary else {}
    yield explain(run, known.failure, claim, shows=known.message.shows, suggests=guesses)


FIRES = {
    "another number of classes": failed(
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: "
        "copying a param with shape torch.Size([1000, 2048]) from checkpoint, the shape in current "
        "model is torch.Size([10, 2048]).",
        "model.load_state_dict(state)",
    ),
    "another optimizer": failed(
        "ValueError: loaded state dict contains a parameter group that doesn't match the size of "
        "optimizer's group"
    ),
}

SILENT = {
    "near miss: keys only": failed(
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "
        '"fc.weight".'
    ),
    "another error": failed("KeyError: 'label'"),
}
