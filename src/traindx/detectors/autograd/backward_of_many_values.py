"""Backward was called on a tensor of several values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, explain, make_failed_run, match_root, site_of
from traindx.source.module import literal
from traindx.source.patches import diff, replacing

MESSAGE = re.compile(r"grad can be implicitly created only for scalar outputs(?: but got (.+))?")


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """Backward is called on a loss that is not one number.

    ## What it detects
    "grad can be implicitly created only for scalar outputs": a loss with one value per example, as
    `reduction="none"` gives, or one per device under DataParallel.

    ## Why it matters
    Several values have no single gradient; how they are to be weighed has to be said.

    ## What to do
    Average over the batch: `loss.mean().backward()`, after any weighting.

    ## When it is wrong
    It is not: the message says it all. If the sum is meant, the learning rate has to shrink.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure, _ = hit
    culprit = _culprit(run, failure)
    reason = f": {culprit.says}" if culprit else ", most often because of reduction='none'"
    yield explain(
        run,
        failure,
        f"Backward is called on a tensor of several values, not on one number{reason}",
        shows="api-misuse",
        culprit=culprit,
    )


def _culprit(run: Run, failure: Failure) -> Culprit | None:
    site = site_of(run, failure)
    modules = [site.module] if site is not None else list(project_of(run).modules)
    kept = [
        (m, call)
        for m in modules
        for call, _ in m.calls()
        if any(k.arg in ("reduction", "reduce") and _is_none(k.value) for k in call.keywords)
    ]
    reason = f"; {ast.unparse(kept[0][1])} returns one value per example" if kept else ""
    if site is not None:
        for call, _ in site.module.calls(site.node):
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr == "backward" and not call.args:
                name = ast.unparse(func.value)
                patch = diff(site.module, replacing(func.value, f"{name}.mean()"))
                return Culprit(site.module, site.node, f"{name} is not reduced{reason}", patch)
    if not kept:
        return None
    return Culprit(*kept[0], reason.removeprefix("; "))


def _is_none(value: ast.expr) -> bool:
    return literal(value) == "none" or (isinstance(value, ast.Constant) and value.value is False)


_ERROR = "RuntimeError: grad can be implicitly created only for scalar outputs"
_SOURCE = """
import torch.nn as nn
criterion = nn.CrossEntropyLoss(reduction="none")
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
"""

FIRES = {
    "the message alone": make_failed_run(_ERROR, "loss.backward()"),
    "no reduction": make_failed_run(_ERROR, "loss.backward()", sources={"train.py": _SOURCE}),
}

SILENT = {
    "near miss: no graph at all": make_failed_run(
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    ),
    "another error": make_failed_run("RuntimeError: CUDA out of memory."),
}
