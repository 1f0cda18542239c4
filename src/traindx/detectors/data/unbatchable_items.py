"""What a dataset returned could not be put together to a batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source.errors import explain, last_burst, make_failed_run, root_failure

KIND = re.compile(r"batch must contain [\w, ]+; found <class '([\w.]+)'>")
FIELD = re.compile(
    r"Unable to create tensor, you should probably activate truncation and/or padding"
    r"(?:.{0,120}\(`(\w+)` in this case\))?",
    re.DOTALL,
)
RAGGED = re.compile(r"expected sequence of length (\d+) at dim (\d+) \(got (\d+)\)")
TEXT = re.compile(r"too many dimensions 'str'")
UNEVEN = re.compile(r"array has an inhomogeneous shape after (\d+) dimensions")
STORAGE = re.compile(r"Trying to resize storage that is not resizable")
EMPTY = re.compile(r"Length of all samples has to be greater than 0")


@detector(needs=("failure",), suggests=("api-misuse", "shape-mismatch"))
def check(run: Run) -> Iterator[Finding]:
    """Items of a dataset cannot be put together to one batch.

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
    found = _words(run)
    if found is None:
        return
    failure, claim, is_ragged = found
    first, second = ("shape-mismatch", "api-misuse") if is_ragged else ("api-misuse", "")
    guesses = {first: Strength.STRONG} | ({second: Strength.WEAK} if second else {})
    yield explain(run, failure, claim, suggests=guesses)


def _words(run: Run) -> tuple[Failure, str, bool] | None:
    """The failure, what it says, and whether lengths differ, rather than kinds."""
    for failure in last_burst(run):
        if (match := FIELD.search(failure.message)) is not None:
            why = "the values are texts" if _has(run, TEXT) else "its lists differ in length"
            field = f"Field {match[1]}" if match[1] else "A field of the batch"
            return failure, f"{field} is not padded to one length: {why}", False
    root = root_failure(run)
    return None if root is None else _said(run, root)


def _said(run: Run, failure: Failure) -> tuple[Failure, str, bool] | None:
    message = failure.message
    if (match := KIND.search(message)) is not None:
        kind = match[1].rsplit(".", 1)[-1]
        what = "None" if kind == "NoneType" else f"a {kind}"
        return failure, f"The dataset returns {what}, which no batch can be made of", False
    if (match := RAGGED.search(message)) is not None:
        return failure, f"Lists of length {match[1]} and {match[3]} are to be one tensor", True
    if UNEVEN.search(message):
        return failure, "Arrays or lists of unequal shape are to be one array", False
    if STORAGE.search(message) and _is_in_worker(run, failure):
        return failure, "A worker cannot stack its examples: their sizes differ", True
    if EMPTY.search(message):
        return failure, "A sequence of length 0 is packed: an example is empty", False
    return None


def _has(run: Run, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(f.message) for f in last_burst(run))


def _is_in_worker(run: Run, failure: Failure) -> bool:
    near = (failure, *last_burst(run))
    is_named = any("DataLoader worker" in f.message for f in near)
    return is_named or any("collate" in frame.file for f in near for frame in f.frames)


FIRES = {
    "an image that could not be read": make_failed_run(
        "TypeError: default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
        "lists; found <class 'NoneType'>",
        "for x, y in loader:",
    ),
    "labels that are not padded": make_failed_run(
        "ValueError: Unable to create tensor, you should probably activate truncation and/or "
        "padding with 'padding=True' 'truncation=True' to have batched tensors with the same "
        "length. Perhaps your features (`labels` in this case) have excessive nesting",
        "trainer.train()",
    ),
    "ragged lists": make_failed_run(
        "ValueError: expected sequence of length 12 at dim 1 (got 9)", "x = torch.tensor(rows)"
    ),
}

SILENT = {
    "near miss: a storage outside of any loader": make_failed_run(
        "RuntimeError: Trying to resize storage that is not resizable", "a.resize_(3)"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
