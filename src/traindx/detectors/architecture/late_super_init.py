"""A module assigned layers before it was initialised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, explain, make_failed_run, match_root, site_of
from traindx.source.module import Function, Module
from traindx.source.patches import Edit, diff, inserting_before, removing

MESSAGE = re.compile(
    r"cannot assign (module|parameters?|buffers?)s? before Module\.__init__\(\) call"
    r"|'(\w+)' object has no attribute '_(?:backward_hooks|modules|parameters|buffers|forward_hooks"
    r"|non_persistent_buffers_set|forward_pre_hooks|backward_pre_hooks)'"
)


@detector(needs=("failure",), suggests=("missing-super-init",))
def check(run: Run) -> Iterator[Finding]:
    """A module assigns layers before `super().__init__()` has run.

    ## What it detects
    "cannot assign module before Module.__init__() call", or a missing `_modules`, `_parameters` or
    `_backward_hooks` on first use.

    ## Why it matters
    The registries in which layers are kept do not exist yet.

    ## What to do
    Call `super().__init__()` as the first statement of `__init__`.

    ## When it is wrong
    A module unpickled from another version of torch may lack a registry too.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure, found = hit
    what = f"a {found[1].rstrip('s')}" if found[1] else f"{found[2]} is used"
    tail = "is assigned before" if found[1] else "without that"
    claim = f"In a module {what} {tail} super().__init__() has run"
    culprit = _culprit(run, failure, found[2] or "")
    yield explain(run, failure, claim, shows="missing-super-init", culprit=culprit)


def _culprit(run: Run, failure: Failure, name: str) -> Culprit | None:
    project = project_of(run)
    site = site_of(run, failure)
    cls = site.module.class_of(site.node) if site is not None else None
    wanted = cls.name if cls is not None else name
    for module in project.modules:
        for own in module.classes.values():
            function = module.functions.get(f"{own.name}.__init__")
            is_it = own.name == wanted or (not wanted and project.is_module(module, own))
            if not is_it or function is None:
                continue
            edits = _edits(module, function)
            if edits:
                says = f"{own.name}.__init__ starts without super().__init__()"
                return Culprit(module, function, says, diff(module, *edits))
    return None


def _edits(module: Module, function: Function) -> list[Edit]:
    """Move the call to the front, or put it there."""
    body = function.body
    is_doc = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    first = body[1] if is_doc and len(body) > 1 else body[0]
    calls = [s for s in body if re.match(r"super\(.*\)\.__init__\(", ast.unparse(s))]
    if calls and calls[0] is first:
        return []
    text = ast.unparse(calls[0]) if calls else "super().__init__()"
    edits = [inserting_before(module, first, text)]
    return [*edits, removing(module, calls[0])] if calls else edits


_MODEL = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(8, 1)
"""
_ERROR = "AttributeError: cannot assign module before Module.__init__() call"

FIRES = {
    "never called": make_failed_run(_ERROR, "self.fc = nn.Linear(8, 1)", sources={"m.py": _MODEL}),
    "noticed on first use": make_failed_run(
        "AttributeError: 'Net' object has no attribute '_backward_hooks'", "out = model(x)"
    ),
}

SILENT = {
    "near miss: an attribute of the user's own": make_failed_run(
        "AttributeError: 'Net' object has no attribute 'fc2'"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
