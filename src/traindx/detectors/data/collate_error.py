from traindx.analysis.errors.loader_messages import (
    TEXTS_IN_BATCH,
    UNBATCHABLE_ITEMS,
    UNPADDED_FIELD,
)
from traindx.analysis.errors.messages import finding, known_error, read
from traindx.analysis.errors.root_failure import is_in_worker, last_burst
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse", "shape-mismatch"))
def check(run: Run) -> Findings:
    """Items of a dataset cannot be collated into one batch.

    ## What it detects
    "batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>",
    "Unable to create tensor, you should probably activate truncation and/or padding" with the
    field it names, "expected sequence of length 12 at dim 1 (got 9)", arrays of "inhomogeneous
    shape", "Trying to resize storage that is not resizable" of a worker, and sequences of length 0.

    ## Why it matters
    The error is raised in the loader; what has to change is what `__getitem__` returns, or the
    function that makes a batch of it.

    ## What to do
    Return tensors or numbers of equal shape, drop what cannot be read before the loader sees it,
    or give a `collate_fn` that pads; labels of sequences have to be padded too.

    ## When it is wrong
    Where lists of unequal length are meant, numpy wants `dtype=object` and torch a padded or
    nested tensor.
    """
    for failure in last_burst(run):
        known = known_error(run, UNPADDED_FIELD, failure)
        if known is not None:
            is_text = any(read(f.message, TEXTS_IN_BATCH) for f in last_burst(run))
            why = "the values are strings" if is_text else "its lists differ in length (no padding)"
            yield finding(known, known.claim(why=why))
            return
    known = known_error(run, UNBATCHABLE_ITEMS)
    if known is not None and (known.kind != "in a worker" or is_in_worker(run, known.failure)):
        yield finding(known)


FIRES = {
    "an image that could not be read": failed(
        "TypeError: default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
        "lists; found <class 'NoneType'>",
        "for x, y in loader:",
    ),
    "labels that are not padded": failed(
        "ValueError: Unable to create tensor, you should probably activate truncation and/or "
        "padding with 'padding=True' 'truncation=True' to have batched tensors with the same "
        "length. Perhaps your features (`labels` in this case) have excessive nesting",
        "trainer.train()",
    ),
    "ragged lists": failed(
        "ValueError: expected sequence of length 12 at dim 1 (got 9)", "x = torch.tensor(rows)"
    ),
}

SILENT = {
    "near miss: a storage outside of any loader": failed(
        "RuntimeError: Trying to resize storage that is not resizable", "a.resize_(3)"
    ),
    "another error": failed("KeyError: 'label'"),
}
