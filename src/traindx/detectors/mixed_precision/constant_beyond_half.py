"""A constant does not fit into half precision."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import explain, make_failed_run, match_root

MESSAGE = re.compile(
    r"value cannot be converted to type (?:at|c10)::(Half) without overflow"
    r"|value cannot be converted to type (?:torch\.)?(float16|Half) without overflow"
)


@detector(needs=("failure",), suggests=("fp16-overflow",))
def check(run: Run) -> Iterator[Finding]:
    """A number is written into a float16 tensor that cannot hold it.

    ## What it detects
    "value cannot be converted to type at::Half without overflow", as of `masked_fill(mask, -1e9)`
    under autocast or in a model of half precision.

    ## Why it matters
    float16 ends at 65504. Code that was written for float32 stops here; with a number just below
    the limit it would give infinities instead.

    ## What to do
    `torch.finfo(x.dtype).min` in place of the number, or bfloat16, or that operation in float32.

    ## When it is wrong
    It is not: the message says it all.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    claim = "A constant is too large for float16, which ends at 65504"
    yield explain(run, hit[0], claim, shows="fp16-overflow")


FIRES = {
    "a mask": make_failed_run(
        "RuntimeError: value cannot be converted to type at::Half without overflow",
        "scores = scores.masked_fill(mask == 0, -1e9)",
    ),
}

SILENT = {
    "near miss: another type": make_failed_run(
        "RuntimeError: value cannot be converted to type int8_t without overflow"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
