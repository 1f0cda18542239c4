"""A tensor was given to numpy that numpy cannot take."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source.errors import Culprit, explain, make_failed_run, match_root, site_of
from traindx.source.patches import diff, replacing

GRADIENT = re.compile(r"Can't call numpy\(\) on (?:Tensor|Variable) that requires grad")
DEVICE = re.compile(
    r"can't convert (?:(\w+(?::\d+)?) device type tensor|(CUDA) tensor) to numpy", re.I
)
TYPE = re.compile(r"Got unsupported ScalarType (\w+)|can't convert np\.ndarray of type ([\w.]+)")


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """A tensor with a graph, on a GPU, or of a type numpy lacks is converted to numpy.

    ## What it detects
    "Can't call numpy() on Tensor that requires grad", "can't convert cuda:0 device type tensor to
    numpy", "Got unsupported ScalarType BFloat16" and arrays of objects on the way back.

    ## Why it matters
    Harmless in metrics, for which `detach()` is right; in the path to the loss the same call would
    cut the graph.

    ## What to do
    `tensor.detach().cpu().numpy()` for metrics and plots, with `.float()` for bfloat16.

    ## When it is wrong
    If the value is needed for training, stay in torch.
    """
    hit = match_root(run, GRADIENT, DEVICE, TYPE)
    if hit is None:
        return
    failure, found = hit
    if found.re is GRADIENT:
        claim = "A tensor that carries a graph is converted to numpy: detach it first"
        culprit = _culprit(run, failure, "detach()")
    elif found.re is DEVICE:
        claim = (
            f"A tensor on {found[1] or found[2]} is converted to numpy: copy it to the CPU first"
        )
        culprit = _culprit(run, failure, "cpu()")
    else:
        culprit = None
        claim = f"A value of type {found[1] or found[2]} has no counterpart between numpy and torch"
    yield explain(run, failure, claim, shows="api-misuse", culprit=culprit)


def _culprit(run: Run, failure: Failure, step: str) -> Culprit | None:
    site = site_of(run, failure)
    if site is None:
        return None
    for call, _ in site.module.calls(site.node):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "numpy" and not call.args:
            owner = ast.get_source_segment(site.module.text, func.value) or ast.unparse(func.value)
            patch = diff(site.module, replacing(func.value, f"{owner}.{step}"))
            return Culprit(site.module, site.node, f"`{owner}` goes to numpy as it is", patch)
    return None


_ERROR = (
    "RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
    "instead."
)

FIRES = {
    "with a graph": make_failed_run(
        _ERROR, "plot(out.numpy())", sources={"t.py": "plot(out.numpy())\n"}
    ),
    "on a GPU": make_failed_run(
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
        "tensor to host memory first."
    ),
}

SILENT = {
    "near miss: two devices in torch": make_failed_run(
        "RuntimeError: Expected all tensors to be on the same device, but found at least two "
        "devices, cuda:0 and cpu!"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
