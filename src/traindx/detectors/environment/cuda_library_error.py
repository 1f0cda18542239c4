"""cuBLAS, cuDNN or another device library gave up."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.errors.culprits import embedding_culprit
from traindx.analysis.errors.environment_messages import DEVICE_LIBRARY
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import make_failed_run
from traindx.model.findings import Finding, Strength
from traindx.model.run import Run
from traindx.registry import detector

WITH_TABLE = {"index-out-of-range": Strength.STRONG, "activation-memory": Strength.WEAK}


@detector(
    needs=("failure",),
    suggests=(
        "index-out-of-range",
        "label-out-of-range",
        "activation-memory",
        "version-mismatch",
        "api-misuse",
        "shape-mismatch",
        "device-shared",
    ),
)
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
    known = known_error(run, DEVICE_LIBRARY)
    if known is None or known.kind == "memory":
        return
    table = None
    if known.kind == "hidden":
        table = embedding_culprit(run, "an id outside of this table of {rows} rows ends so")
    if table is None:
        yield finding(known)
    else:
        claim = known.claim(table="an index out of its table")
        yield finding(known, claim, suggests=WITH_TABLE, culprit=table)


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
