from math import inf, isnan
from typing import Any

from traindx.analysis.steps.nonfinite_origins import (
    are_weights_sound,
    is_masked_later,
    is_mean_of_nothing,
    origins,
)
from traindx.analysis.steps.step_graph import Act, Step, steps_of
from traindx.examples import captured, step_of
from traindx.registry import Findings, Run, detector, finding

OVERFLOW = "fp16-overflow"
UNSTABLE = "unstable-operation"
LARGEST = 65504  # in half precision
SANE = 1e3  # weights beyond this diverged, and what they overflow is no fault of the operation
# outside of their domain, or at its edge, these give no number
PARTIAL = frozenset(
    {"log", "log2", "log10", "log1p", "div", "sqrt", "rsqrt", "reciprocal", "pow", "acos", "asin",
     "atanh", "acosh", "exp", "expm1", "sinh", "cosh", "tan", "std", "var", "linalg_inv_ex",
     "cholesky", "linalg_cholesky_ex", "digamma", "lgamma", "logit", "erfinv"}
)  # fmt: skip


@detector(needs=("step",), suggests=(OVERFLOW, UNSTABLE))
def check(run: Run) -> Findings:
    """In a captured step an operation gives NaN or infinity from finite inputs.

    ## What it detects
    Back from a loss that is NaN or infinite, the first operation whose inputs are finite: in half
    precision any (nothing above 65,504 fits), else one that is not defined everywhere, as a
    logarithm, a quotient or a square root.

    ## Why it matters
    From there on everything is NaN: the loss, the gradients, and with the first update the weights.

    ## What to do
    Keep sums of squares, spectra and exponentials in float32 (`with autocast(enabled=False)`, or
    `.float()` first); clamp the input of a logarithm, root or quotient away from its edge.

    ## When it is wrong
    Where weights are broken already, or are huge, the operation only shows it; nothing is said.
    Values that are filled in on purpose, as -inf behind a mask, are left alone, and so is a mean
    over no element: what is missing there is data.
    """
    for step in steps_of(run):
        if not are_weights_sound(step, SANE):
            continue
        for act in origins(step):
            cause = _cause(step, act)
            if cause is not None:
                yield finding(
                    _claim(act, cause), cause, step.cite(act, _values(act)), place=act.place,
                    onset=step.captured.step,
                )  # fmt: skip
                return


def _cause(step: Step, act: Act) -> str | None:
    if act.outputs[0].facts.dtype == "float16":
        return OVERFLOW
    is_partial = act.name in PARTIAL and act.outputs[0].facts.dtype != "bfloat16"
    is_partial = is_partial and not is_mean_of_nothing(act)
    return UNSTABLE if is_partial and not is_masked_later(step, act) else None


def _claim(act: Act, cause: str) -> str:
    if cause == OVERFLOW:
        return f"`{act.name}` overflows in half precision: its result exceeds {LARGEST}"
    return f"`{act.name}` gives the first NaN or infinity, from finite inputs"


def _values(act: Act) -> str:
    ranges = [
        f"{n.facts.low:.4g} to {n.facts.high:.4g}"
        for n in act.inputs
        if not isnan(n.facts.low) and -inf < n.facts.low
    ]
    kind = act.outputs[0].facts.dtype
    return f"`{act.name}` of values from {' and '.join(ranges) or 'its inputs'} in {kind}"


_STEP = """
x: batch/0 (32, 8)
w: parameter:fc.weight (4, 8)
h (32, 4) = mm(x, w) in fc
s (32, 4) = {op}(h) @ 30
{lines}
loss () = mean({last})
"""
_BAD = {"nonfinite": 3}


def _run(
    op: str, kind: str = "float32", lines: str = "", last: str = "s", weight: float = 0.5
) -> Run:
    facts: dict[str, Any] = {
        "h": {"low": 0.0, "high": 305.0},
        "w": {"low": -weight, "high": weight},
        "s": {**_BAD, "dtype": kind},
        "loss": _BAD,
    }
    if "m (" in lines:
        facts["m"] = _BAD
    return captured(step_of(_STEP.format(op=op, lines=lines, last=last), **facts))


_NOTHING = """
n: outside ()
w: parameter:fc.weight (4, 8)
s () = nll_loss(w)
loss () = div(s, n)
"""

FIRES = {
    "squares in half precision": _run("mul", "float16"),
    "a matrix product in half precision": _run("bmm", "float16", "m (32, 4) = relu(s)", "m"),
    "the logarithm of zero": _run("log"),
    "a quotient by zero": _run("div", lines="m (32, 4) = mul(s, h)", last="m"),
}

SILENT = {
    "near miss: -inf behind a mask": _run("masked_fill"),
    "near miss: a logarithm as a mask, below a softmax": _run(
        "log", lines="m (32, 4) = softmax(s)", last="m"
    ),
    "near miss: weights that diverged": _run("exp", weight=1e6),
    "near miss: a product in full precision": _run("mul"),
    "near miss: a mean over no target": captured(
        step_of(
            _NOTHING,
            n={"low": 0.0, "high": 0.0},
            s={"low": 0.0, "high": 0.0},
            loss=_BAD,
            w={"low": -0.5, "high": 0.5},
        )
    ),
}
