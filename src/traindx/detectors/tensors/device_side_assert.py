from traindx.analysis.errors.culprits import embedding_culprit
from traindx.analysis.errors.device_messages import DEVICE_ASSERT
from traindx.analysis.errors.messages import finding, known_error
from traindx.analysis.errors.root_failure import last_burst
from traindx.examples import failed, script
from traindx.registry import Findings, Run, Strength, detector

WITH_TABLE = {"index-out-of-range": Strength.STRONG, "label-out-of-range": Strength.WEAK}


@detector(needs=("failure",), suggests=("index-out-of-range", "label-out-of-range"))
def check(run: Run) -> Findings:
    """A CUDA kernel's assertion failed, without the line that says which.

    ## What it detects
    "CUDA error: device-side assert triggered" where the assertion itself is not in the log. With
    the source: whether the model looks indices up (an embedding) or only the loss does.

    ## Why it matters
    CUDA reports it later, at an unrelated line, and every following CUDA call of the process fails
    as well. It comes and goes, because only some batches hold the bad index.

    ## What to do
    Fix the seeds, save the failing batch, run it on the CPU or with `CUDA_LAUNCH_BLOCKING=1`: the
    message then names index and size. Then check the range where the data are made: clamping the
    ids would train on wrong rows.

    ## When it is wrong
    Custom kernels have assertions of their own.
    """
    known = known_error(run, DEVICE_ASSERT)
    if known is None or any(f.type == "DeviceAssert" for f in last_burst(run)):
        return
    says = "an id below 0, or beyond the {rows} rows of this embedding, causes this error"
    table = embedding_culprit(run, says)
    if table is None:
        yield finding(known, known.claim(where=", most often an index or label"))
    else:
        claim = known.claim(where=" in a model with an embedding")
        yield finding(known, claim, suggests=WITH_TABLE, culprit=table)


_ERROR = (
    "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be "
    "asynchronously reported at some other API call, so the stacktrace below might be incorrect."
)

FIRES = {
    "nothing known": failed(_ERROR, "loss.backward()"),
    "a text model": failed(
        _ERROR,
        "loss.backward()",
        sources={"m.py": "from torch import nn\ne = nn.Embedding(10000, 128)\nloss.backward()\n"},
    ),
}

SILENT = {
    "near miss: a clear error of the CPU": failed(
        "IndexError: index out of range in self", "x = self.embedding(x)"
    ),
    "no error": script("from torch import nn\ne = nn.Embedding(10000, 128)\n"),
}
