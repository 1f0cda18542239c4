from traindx.analysis.errors.culprits import Culprit
from traindx.analysis.errors.messages import KnownError, findings
from traindx.analysis.errors.precision_messages import (
    DTYPES,
    dtype_words,
    is_of_dtypes,
    names_float64,
)
from traindx.analysis.errors.written_calls import float64_from_numpy
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("dtype-mismatch",))
def check(run: Run) -> Findings:
    """An operation gets tensors of types that it cannot combine.

    ## What it detects
    "expected scalar type Float but found Double", "mat1 and mat2 must have the same dtype", a
    kernel "not implemented for 'Int'", class labels that are not int64, and their older forms. With
    the source: where numpy's float64 becomes a tensor.

    ## Why it matters
    The types differ since the data were made; a cast in front of the failing layer only moves the
    error to the next one.

    ## What to do
    Convert once, where the data become tensors: inputs to float32, class indices to int64.

    ## When it is wrong
    Under autocast the clash may come from a custom function that casts by itself.
    """
    yield from findings(run, DTYPES, blame=_made_by_numpy, words=dtype_words, when=is_of_dtypes)


def _made_by_numpy(known: KnownError) -> Culprit | None:
    return float64_from_numpy(known.run, known.failure) if names_float64(known) else None


_DATA = """
import numpy as np
import torch
x = torch.from_numpy(np.random.rand(64, 8))
loss = model(x).mean()
"""

FIRES = {
    "numpy data": failed(
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Double and Float",
        "loss = model(x).mean()",
        sources={"train.py": _DATA},
    ),
    "labels": failed(
        "RuntimeError: expected scalar type Long but found Float", "loss = criterion(out, y)"
    ),
    "labels on a GPU": failed(
        "RuntimeError: \"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'"
    ),
    "raw images": failed(
        "RuntimeError: Input type (unsigned char) and bias type (float) should be the same"
    ),
    "a recurrent layer": failed(
        "ValueError: RNN input dtype (torch.float64) does not match weight dtype (torch.float32)."
    ),
    "integer targets": failed(
        "RuntimeError: result type Float can't be cast to the desired output type Long"
    ),
    "parameters of a sharded module": failed(
        "ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and "
        "torch.float32",
        "trainer.train()",
    ),
}

SILENT = {
    "near miss: one type on two devices": failed(
        "RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) "
        "should be the same"
    ),
    "another error": failed("RuntimeError: CUDA out of memory."),
}
