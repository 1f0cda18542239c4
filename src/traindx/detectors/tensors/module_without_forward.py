"""A module was called that has no forward."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, explain, make_failed_run, match_root
from traindx.source.module import Function, Module
from traindx.source.patches import Edit, diff

NAMED = re.compile(r"Module \[(\w+)\] is missing the required \"forward\" function")


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """A module is called that defines no `forward`.

    ## What it detects
    'Module [Net] is missing the required "forward" function'. With the source, why: `forward`
    misspelt, or indented so that it stands outside of the class or inside of `__init__`. A
    ModuleList or ModuleDict that is called has none either.

    ## Why it matters
    The class looks complete; one level of indentation decides.

    ## What to do
    Indent `forward` as a method of the class; loop over the layers of a ModuleList, or use
    `nn.Sequential`.

    ## When it is wrong
    It is not: the message is exact.
    """
    hit = match_root(run, NAMED, types=("NotImplementedError",))
    if hit is None:
        return
    failure, found = hit
    name = found[1]
    culprit = _culprit(run, name)
    if name in ("ModuleList", "ModuleDict"):
        claim = f"A {name} is called: it only holds layers, loop over them or use nn.Sequential"
    else:
        reason = f": {culprit.says}" if culprit else ""
        claim = f"The module {name} is called and has no forward{reason}"
    yield explain(run, failure, claim, shows="api-misuse", culprit=culprit)


def _culprit(run: Run, name: str) -> Culprit | None:
    for module in project_of(run).modules:
        cls = module.classes.get(name)
        if cls is None:
            continue
        for dotted, function in module.functions.items():
            if dotted.startswith(f"{name}.__init__.") and function.name == "forward":
                return Culprit(module, function, "forward is indented into __init__")
            if dotted == "forward":
                return Culprit(module, function, "forward stands outside of the class")
            if dotted.startswith(f"{name}.") and _is_misspelt(function.name):
                says = f"it is spelt {function.name}"
                return Culprit(module, function, says, _respelt(module, function))
        return Culprit(module, cls, "the class defines none")
    return None


def _is_misspelt(name: str) -> bool:
    return name != "forward" and sorted(name.lower().strip("_")) in (
        sorted("forward"), sorted("foward"), sorted("forword"), sorted("forwards")
    )  # fmt: skip


def _respelt(module: Module, function: Function) -> str | None:
    start = module.lines[function.lineno - 1].find(function.name)
    if start < 0:
        return None
    edit = Edit(function.lineno, start, function.lineno, start + len(function.name), "forward")
    return diff(module, edit)


_MODEL = """
from torch import nn
class Net(nn.Module):
    def foward(self, x):
        return x
"""
_ERROR = 'NotImplementedError: Module [Net] is missing the required "forward" function'

FIRES = {
    "the message alone": make_failed_run(_ERROR, "out = model(x)"),
    "misspelt": make_failed_run(_ERROR, sources={"model.py": _MODEL}),
    "a list of layers": make_failed_run(
        'NotImplementedError: Module [ModuleList] is missing the required "forward" function'
    ),
}

SILENT = {
    "near miss: an operator that is missing": make_failed_run(
        "NotImplementedError: \"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
