from traindx.analysis.errors.culprits import embedding_culprit
from traindx.analysis.errors.environment_messages import DEVICE_LIBRARY
from traindx.analysis.errors.messages import causes_in, finding, known_error
from traindx.examples import failed
from traindx.registry import Findings, Run, Strength, detector

WITH_TABLE = {"index-out-of-range": Strength.STRONG, "activation-memory": Strength.WEAK}


@detector(needs=("failure",), suggests=causes_in(DEVICE_LIBRARY))
def check(run: Run) -> Findings:
    """A CUDA library fails with a status code such as CUBLAS_STATUS_EXECUTION_FAILED.

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
    if known is None:
        return
    says = "an id beyond the {rows} rows of this embedding causes this error"
    table = embedding_culprit(run, says) if known.kind == "hidden" else None
    if table is None:
        yield finding(known)
    else:
        claim = known.claim(table="an index out of range of its embedding")
        yield finding(known, claim, suggests=WITH_TABLE, culprit=table)


FIRES = {
    "cuDNN under TensorFlow": failed(
        "tensorflow.python.framework.errors_impl.UnknownError: Failed to get convolution algorithm."
        " This is probably because cuDNN failed to initialize."
    ),
    "cuBLAS": failed(
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(h)`"
    ),
    "cuDNN": failed("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may"),
    "no engine": failed("RuntimeError: GET was unable to find an engine to execute this"),
}

SILENT = {
    "near miss: no memory for the library": failed(
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    ),
    "another error": failed("KeyError: 'label'"),
}
