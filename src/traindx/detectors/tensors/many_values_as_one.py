"""A tensor of several values was used as one number or one truth."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import (
    Culprit,
    Site,
    culprit_frame,
    explain,
    make_failed_run,
    match_root,
    site_of,
)
from traindx.source.patches import Edit, diff
from traindx.source.values import LOSS_CLASSES

SCALAR = re.compile(
    r"only one element tensors can be converted to Python scalars"
    r"|a Tensor with (\d+) elements cannot be converted to Scalar"
    r"|only (?:length-1|size-1|0-dimensional) arrays can be converted to Python scalars"
)
TRUTH = re.compile(
    r"(?:Boolean|bool) value of Tensor with (more than one|no) values? is ambiguous"
    r"|truth value of an array with more than one element is ambiguous"
)
LOSS_CALL = re.compile(r"\b(?:nn\.)?(\w*(?:Loss|Criterion))\(\s*[^)=]+,")


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """A tensor of several values is used where one number or one truth is wanted.

    ## What it detects
    "only one element tensors can be converted to Python scalars", "a Tensor with 2 elements cannot
    be converted to Scalar" and "Boolean value of Tensor with more than one value is ambiguous",
    which a loss class gives too when it is called like a function: `nn.CrossEntropyLoss(out, y)`.

    ## Why it matters
    The message speaks of conversion; the fault is a missing reduction or a missing pair of
    brackets.

    ## What to do
    Reduce first (`.mean().item()`, `.all()`), or make the loss before calling it:
    `nn.CrossEntropyLoss()(out, y)`.

    ## When it is wrong
    It is not: the message is exact. Whether mean, sum or any is meant, only the author knows.
    """
    hit = match_root(run, TRUTH, SCALAR)
    if hit is None:
        return
    failure, found = hit
    site = site_of(run, failure)
    made = _loss_as_function(run, failure, site) if found.re is TRUTH else None
    if made is not None:
        claim = f"{made[0]} gets outputs and targets in place of its options: it is a class to make"
    elif found.re is TRUTH:
        claim = "A tensor of several values is used as a condition; say .any() or .all()"
    else:
        count = f"A tensor of {found[1]} values" if found[1] else "A tensor of several values"
        claim = f"{count} is converted to one number; reduce it first, such as with .mean()"
    culprit = made[1] if made is not None else None
    yield explain(run, failure, claim, shows="api-misuse", culprit=culprit)


def _loss_as_function(
    run: Run, failure: Failure, site: Site | None
) -> tuple[str, Culprit | None] | None:
    if site is None:
        frame = culprit_frame(run, failure)
        found = LOSS_CALL.search(frame.code) if frame is not None else None
        return (found[1], None) if found is not None and not project_of(run).modules else None
    for call, name in site.module.calls(site.node):
        last = name.rsplit(".", 1)[-1]
        if name.startswith("torch.nn.") and LOSS_CLASSES.search(last) and len(call.args) > 1:
            end_line = call.func.end_lineno or call.lineno
            end = call.func.end_col_offset or 0
            patch = diff(site.module, Edit(end_line, end, end_line, end, "()"))
            return last, Culprit(site.module, site.node, f"{last} is made, not called", patch)
    return None


_SOURCE = "from torch import nn\nloss = nn.CrossEntropyLoss(out, y)\n"

FIRES = {
    "a loss class as a function": make_failed_run(
        "RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
        "loss = nn.CrossEntropyLoss(out, y)",
        sources={"train.py": _SOURCE},
    ),
    "a condition": make_failed_run(
        "RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
        "if preds == labels:",
    ),
    "item of many": make_failed_run(
        "RuntimeError: a Tensor with 2 elements cannot be converted to Scalar",
        "total += loss.item()",
    ),
}

SILENT = {
    "near miss: backward of many": make_failed_run(
        "RuntimeError: grad can be implicitly created only for scalar outputs"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
