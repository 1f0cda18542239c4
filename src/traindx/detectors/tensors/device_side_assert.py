"""A kernel's assertion failed and nobody said which."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import (
    Culprit,
    embedding_tables,
    explain,
    last_burst,
    make_failed_run,
    match_root,
)

MESSAGE = re.compile(
    r"device-side assert triggered|an illegal memory access was encountered"
    r"|HIP error: .{0,40}assert"
)
HOW = (
    "the line of the traceback is not the place: rerun the batch on the CPU, or with "
    "CUDA_LAUNCH_BLOCKING=1"
)


@detector(needs=("failure",), suggests=("index-out-of-range", "label-out-of-range"))
def check(run: Run) -> Iterator[Finding]:
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
    hit = match_root(run, MESSAGE)
    if hit is None or any(f.type == "DeviceAssert" for f in last_burst(run)):
        return
    failure, _ = hit
    table = _table(run)
    if table is None:
        guesses = {"label-out-of-range": Strength.MODERATE, "index-out-of-range": Strength.MODERATE}
        claim = f"An assertion in a CUDA kernel failed, most often an index or label; {HOW}"
        yield explain(run, failure, claim, suggests=guesses)
        return
    claim = f"An assertion in a CUDA kernel failed in a model with an embedding; {HOW}"
    guesses = {"index-out-of-range": Strength.STRONG, "label-out-of-range": Strength.WEAK}
    yield explain(run, failure, claim, suggests=guesses, culprit=table)


def _table(run: Run) -> Culprit | None:
    for module, call, rows in embedding_tables(project_of(run)):
        says = f"an id outside of this table of {rows} rows, or below 0, fails just so"
        return Culprit(module, call, says)
    return None


_ERROR = (
    "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be "
    "asynchronously reported at some other API call, so the stacktrace below might be incorrect."
)

FIRES = {
    "nothing known": make_failed_run(_ERROR, "loss.backward()"),
    "a text model": make_failed_run(
        _ERROR,
        "loss.backward()",
        sources={"m.py": "from torch import nn\ne = nn.Embedding(10000, 128)\nloss.backward()\n"},
    ),
}

SILENT = {
    "near miss: a clear error of the CPU": make_failed_run(
        "IndexError: index out of range in self", "x = self.embedding(x)"
    ),
    "no error": make_run(sources={"m.py": "from torch import nn\ne = nn.Embedding(10000, 128)\n"}),
}
