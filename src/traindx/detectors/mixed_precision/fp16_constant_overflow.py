from traindx.analysis.errors.messages import findings
from traindx.analysis.errors.precision_messages import CONSTANT_BEYOND_HALF
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("fp16-overflow",))
def check(run: Run) -> Findings:
    """A constant is written into a float16 tensor and does not fit.

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
    yield from findings(run, CONSTANT_BEYOND_HALF)


FIRES = {
    "a mask": failed(
        "RuntimeError: value cannot be converted to type at::Half without overflow",
        "scores = scores.masked_fill(mask == 0, -1e9)",
    )
}

SILENT = {
    "near miss: another type": failed(
        "RuntimeError: value cannot be converted to type int8_t without overflow"
    ),
    "another error": failed("KeyError: 'label'"),
}
