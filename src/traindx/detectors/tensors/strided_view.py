"""view() on a tensor whose memory order does not allow it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source.errors import Culprit, Site, explain, make_failed_run, match_root, site_of
from traindx.source.patches import Edit, diff

MESSAGE = re.compile(
    r"view size is not compatible with input tensor's size and stride"
    r"|input is not contiguous.{0,40}view"
)


@detector(needs=("failure",), suggests=("non-contiguous-view",))
def check(run: Run) -> Iterator[Finding]:
    """`view` is called on a tensor that is not contiguous.

    ## What it detects
    "view size is not compatible with input tensor's size and stride", and the `.view` on the line
    of the user's own code that raised it.

    ## Why it matters
    After `transpose`, `permute` or a slice the elements are no longer in the order that `view`
    needs; it cannot copy, `reshape` can.

    ## What to do
    Use `.reshape(…)` in its place, after checking that the order of the axes is the one you mean.

    ## When it is wrong
    A view that merges transposed dimensions may mix what should stay apart; then the permutation
    is wrong, and `reshape` would hide it.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure, _ = hit
    site = site_of(run, failure)
    call = _view_call(site)
    claim = "A view() is called on a tensor whose elements are not in memory order"
    culprit = None
    if site is not None and call is not None:
        claim = f"{_short(call)} is called on a tensor whose elements are not in memory order"
        says = "a transpose, permute or slice came before this view; reshape copies where needed"
        culprit = Culprit(site.module, call, says, diff(site.module, _renaming(call)))
    yield explain(run, failure, claim, shows="non-contiguous-view", culprit=culprit)


def _view_call(site: Site | None) -> ast.Call | None:
    """The only view on the line, or the first that follows a transpose in the same expression."""
    if site is None:
        return None
    calls = [
        n
        for n in ast.walk(site.node)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "view"
    ]
    if len(calls) == 1:
        return calls[0]
    turned = [c for c in calls if re.search(r"\.(transpose|permute|t|T)\b", ast.unparse(c.func))]
    return turned[-1] if turned else None


def _short(call: ast.Call) -> str:
    return f".view({', '.join(ast.unparse(a) for a in call.args)})"


def _renaming(call: ast.Call) -> Edit:
    """Replace the word `view` and nothing else."""
    line = call.func.end_lineno or call.func.lineno
    end = call.func.end_col_offset or 0
    return Edit(line, end - len("view"), line, end, "reshape")


_MODEL = """
from torch import nn

class Heads(nn.Module):
    def forward(self, x):
        b, t, h, d = x.shape
        x = x.transpose(1, 2)  # heads first
        return x.view(b, h, t * d)
"""
_ERROR = (
    "RuntimeError: view size is not compatible with input tensor's size and stride (at least one "
    "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
)

FIRES = {
    "with the source": make_failed_run(
        _ERROR, "return x.view(b, h, t * d)", sources={"model.py": _MODEL}
    ),
    "the message alone": make_failed_run(_ERROR),
}

SILENT = {
    "near miss: a view of another size": make_failed_run(
        "RuntimeError: shape '[32, 400]' is invalid for input of size 57600"
    ),
    "another error": make_failed_run("RuntimeError: CUDA out of memory."),
}
