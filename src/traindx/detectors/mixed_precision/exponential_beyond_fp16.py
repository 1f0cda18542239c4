"""An operation in half precision makes a number that float16 does not hold."""

from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.facts.half_overflows import HalfOverflow, half_overflows
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CAUSE = "fp16-overflow"


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A float16 tensor gets numbers beyond 65504: an exponential, or the constant of a mask.

    ## What it detects
    The exponential of float16 scores whose bound is in sight: cosines, probabilities or clamped
    values over a temperature (`exp(cos / 0.07)` reaches 1.6 million). And `masked_fill(mask, -1e9)`
    of a float16 tensor.

    ## Why it matters
    float16 ends at 65504. The exponential is infinite, inf / inf is NaN, and the loss is NaN while
    the same code runs in float32. The constant raises an error.

    ## What to do
    `log_softmax` or `logsumexp` of float32 scores (`scores.float()`); `torch.finfo(x.dtype).min`
    for a mask.

    ## When it is wrong
    Scores that never come near their bound stay finite. Under autocast torch computes exponentials
    in float32; such are left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in half_overflows(story):
            if found.event.node not in seen:
                seen.add(found.event.node)
                yield _finding(found)


def _finding(found: HalfOverflow) -> Finding:
    text = source_text(found.event)
    what = "reaches" if found.is_exponential else "writes"
    return finding(
        f"`{text}` {what} {found.number:.2g} in float16, which ends at 65504",
        CAUSE,
        found.event,
        cite(found.event, f"{what} {found.number:.2g}"),
        is_symptom=True,
    )


_SCORES = """
import torch
import torch.nn.functional as F
from torch import nn

net = nn.Linear(8, 8){half}
x = torch.randn(4, 8).half()
a = {made}
{after}
"""


def _scores(made: str, after: str, half: str = ".half()") -> Run:
    text = _SCORES.format(made=made, after=after, half=half)
    return make_run(sources={"train.py": text})


_COSINES = "F.normalize(net(x), dim=-1) @ F.normalize(net(x), dim=-1).T"

FIRES = {
    "cosines over a temperature": _scores(_COSINES, "torch.exp(a / 0.07)"),
    "probabilities times a scale": _scores("net(x).softmax(-1)", "(a * 20).exp()"),
    "the constant of a mask": _scores("net(x)", "a.masked_fill(a > 0, -1e9)"),
}

SILENT = {
    "near miss: in float32": _scores(_COSINES, "torch.exp(a.float() / 0.07)"),
    "near miss: a mild temperature": _scores(_COSINES, "torch.exp(a / 0.1)"),
    "near miss: a model in float32": _scores(
        "F.normalize(net(x.float())) @ F.normalize(net(x.float())).T", "torch.exp(a / 0.07)", ""
    ),
    "near miss: scores without a bound": _scores("net(x)", "torch.exp(a / 0.07)"),
    "near miss: minus infinity": _scores("net(x)", "a.masked_fill(a > 0, float('-inf'))"),
}
