"""A value could not be written as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

MESSAGE = re.compile(r"Object of type (\w+) is not JSON serializable")
CURES = {"Tensor": ".item() for one value, .tolist() for many", "ndarray": ".tolist()"}


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """A metric of numpy or torch is written to JSON as it is.

    ## What it detects
    "Object of type float32 is not JSON serializable" and the same for tensors, arrays and paths.

    ## Why it matters
    It strikes at the end of an epoch, when results are written, and costs the run.

    ## What to do
    Convert at the border: `float(value)` for numpy numbers, `.item()` for tensors, `.tolist()` for
    arrays, `str(path)`.

    ## When it is wrong
    It is not: the message names the type.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure, found = hit
    kind = found[1]
    cure = CURES.get(kind, "float(…) or int(…)" if re.match(r"(float|u?int)\d", kind) else "str(…)")
    claim = f"A {kind} is written to JSON, which knows no such type: convert it with {cure}"
    yield explain(run, failure, claim, shows="api-misuse")


FIRES = {
    "a numpy number": make_failed_run(
        "TypeError: Object of type float32 is not JSON serializable", "json.dump(metrics, f)"
    )
}

SILENT = {
    "near miss: pickling": make_failed_run("TypeError: cannot pickle '_thread.lock' object"),
    "another error": make_failed_run("KeyError: 'label'"),
}
