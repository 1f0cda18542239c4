"""cuBLAS, cuDNN or another device library gave up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, embedding_tables, explain, make_failed_run, match_root

STATUS = re.compile(
    r"\b(CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+|CUFFT_\w+|CUSOLVER_STATUS_\w+|CUDNN_BACKEND_\w+)"
)
CALLING = re.compile(r"when calling `?(\w+)")
START = re.compile(r"Failed to get convolution algorithm|cuDNN failed to initialize")
ENGINE = re.compile(r"Unable to find a valid cuDNN algorithm|GET was unable to find an engine")
HIDDEN = {"NOT_INITIALIZED", "EXECUTION_FAILED", "INTERNAL_ERROR", "MAPPING_ERROR"}
GUESSES = {
    "index-out-of-range": Strength.MODERATE,
    "label-out-of-range": Strength.MODERATE,
    "activation-memory": Strength.MODERATE,
    "version-mismatch": Strength.WEAK,
}


@detector(needs=("failure",), suggests=(*GUESSES, "api-misuse", "shape-mismatch", "device-shared"))
def check(run: Run) -> Iterator[Finding]:
    """A device library reports a status that says little.

    ## What it detects
    CUBLAS_STATUS_…, CUDNN_STATUS_… and their kin, with the call, and what usually hides behind
    each: NOT_INITIALIZED and EXECUTION_FAILED an earlier device-side assert (an index or label out
    of range) or a full device; NOT_SUPPORTED a tensor that is not contiguous or too large;
    "unable to find an engine" and TensorFlow's "failed to get convolution algorithm" a full device.

    ## Why it matters
    The library is only the first that notices; searching for its status leads astray.

    ## What to do
    Run the failing batch on the CPU, or with `CUDA_LAUNCH_BLOCKING=1`: an index error then shows
    its numbers. If it passes, watch the free memory.

    ## When it is wrong
    Two CUDA libraries of different versions on the path give the same status from the start.
    """
    hit = match_root(run, STATUS, ENGINE, START)
    if hit is None or hit[1][0].endswith("ALLOC_FAILED"):
        return
    failure, found = hit
    calling = CALLING.search(failure.message)
    call = f" in {calling[1]}" if calling is not None else ""
    if found.re is START:
        claim = "The library cuDNN does not start: the device is full, or its version does not fit"
        guesses = {
            "activation-memory": Strength.MODERATE,
            "version-mismatch": Strength.MODERATE,
            "device-shared": Strength.WEAK,
        }
        yield explain(run, failure, claim, suggests=guesses)
        return
    if found.re is ENGINE:
        claim = "The library cuDNN found no algorithm that works here: mostly the device is full"
        guesses = {"activation-memory": Strength.STRONG, "version-mismatch": Strength.WEAK}
        yield explain(run, failure, claim, suggests=guesses)
        return
    status = found[1]
    word = status.split("_STATUS_")[-1]
    if word in HIDDEN:
        claim = (
            f"The device library stops with {status}{call}; the fault lies before: {_before(run)}"
        )
        yield explain(run, failure, claim, suggests=_guesses(run), culprit=_table(run))
        return
    is_refused = word == "INVALID_VALUE"
    what = "refuses sizes or types" if is_refused else "does not support these tensors"
    first = "shape-mismatch" if is_refused else "api-misuse"
    guesses = {first: Strength.MODERATE, "version-mismatch": Strength.MODERATE}
    yield explain(run, failure, f"The device library {what}{call} ({status})", suggests=guesses)


def _table(run: Run) -> Culprit | None:
    for module, call, rows in embedding_tables(project_of(run)):
        return Culprit(module, call, f"an id outside of this table of {rows} rows ends so")
    return None


def _guesses(run: Run) -> dict[str, Strength]:
    if _table(run) is None:
        return GUESSES
    return {"index-out-of-range": Strength.STRONG, "activation-memory": Strength.WEAK}


def _before(run: Run) -> str:
    return "an index out of its table" if _table(run) else "an index or label, or a full device"


FIRES = {
    "cuDNN under TensorFlow": make_failed_run(
        "tensorflow.python.framework.errors_impl.UnknownError: Failed to get convolution algorithm."
        " This is probably because cuDNN failed to initialize."
    ),
    "cuBLAS": make_failed_run(
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(h)`"
    ),
    "cuDNN": make_failed_run(
        "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may"
    ),
    "no engine": make_failed_run("RuntimeError: GET was unable to find an engine to execute this"),
}

SILENT = {
    "near miss: no memory for the library": make_failed_run(
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
