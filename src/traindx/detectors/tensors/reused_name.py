"""A name meant a function, and now means a value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Failure, Run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.errors import Culprit, Site, explain, make_failed_run, match_root, site_of
from traindx.source.module import key_of
from traindx.source.renames import apart

MESSAGE = re.compile(r"'([\w.]+)' object is not callable")
LIBRARIES = ("torch", "nn", "F", "np", "numpy", "math", "dist")
SELF_CALL = re.compile(r"^(\w+) = \1\(")


@detector(needs=("failure",), suggests=("name-shadowed", "api-misuse"))
def check(run: Run) -> Iterator[Finding]:
    """A value is called as if it were the function whose name it took.

    ## What it detects
    "'Tensor' object is not callable" and its kin for numbers, lists, strings and modules. With the
    source or the failing line: the assignment that gave the name away, such as
    `loss = loss(output, target)`.

    ## Why it matters
    It works once and fails the second time, so the first batch passes.

    ## What to do
    Give the function a name of its own, such as `criterion`.

    ## When it is wrong
    A missing operator (`2(x)`) or an attribute that is no method reads the same.
    """
    hit = match_root(run, MESSAGE)
    if hit is None:
        return
    failure, found = hit
    site = site_of(run, failure) or _self_call(run)
    name, culprit = _culprit(site, failure)
    kind = found[1]
    if name:
        claim = f"What is called as {name} is a {kind} by now: an assignment took the name"
        yield explain(run, failure, claim, shows="name-shadowed", culprit=culprit)
        return
    claim = f"A {kind} is called as if it were a function"
    is_name = _calls_names_only(failure)
    guesses = {
        "name-shadowed": Strength.STRONG if is_name else Strength.MODERATE,
        "api-misuse": Strength.WEAK if is_name else Strength.MODERATE,
    }
    yield explain(run, failure, claim, suggests=guesses)


def _calls_names_only(failure: Failure) -> bool:
    """Tell whether the failing line calls plain names, which were functions when it was written.

    An attribute (`x.T()`, `x.shape(0)`) or a result (`model(x)(y)`) may never have been one.
    """
    code = failure.frames[-1].code if failure.frames else ""
    try:
        tree = ast.parse(code.removeprefix("return ").rstrip(":"))
    except SyntaxError:
        return False
    called = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return bool(called) and all(isinstance(f, ast.Name) or _is_library(f) for f in called)


def _is_library(called: ast.expr) -> bool:
    return (key_of(called) or "").split(".")[0] in LIBRARIES


def _self_call(run: Run) -> Site | None:
    """The one statement of the source that gives a function's name to its result."""
    found = [
        Site(m, n)
        for m in project_of(run).modules
        for n in ast.walk(m.tree)
        if isinstance(n, ast.Assign) and SELF_CALL.match(ast.unparse(n))
    ]
    return found[0] if len(found) == 1 else None


def _culprit(site: Site | None, failure: Failure) -> tuple[str, Culprit | None]:
    if site is None:
        code = failure.frames[-1].code if failure.frames else ""
        shadowed = SELF_CALL.match(code)
        return (shadowed[1], None) if shadowed else ("", None)
    scope = site.function or site.module.tree
    for call, _ in site.module.calls(site.node):
        name = key_of(call.func)
        taken = [n for n in _bindings(scope, name) if _is_result(n, name)] if name else []
        if name and taken:
            says = f"`{ast.unparse(taken[0])}` gives the name of the function to its result"
            patch = apart(site.module, taken[0])
            return name, Culprit(site.module, taken[0], says, patch)
    return "", None


def _bindings(scope: ast.AST, name: str) -> list[ast.Assign]:
    nodes = (n for n in ast.walk(scope) if isinstance(n, ast.Assign))
    return [n for n in nodes if any(key_of(t) == name for t in n.targets)]


def _is_result(node: ast.Assign, name: str | None) -> bool:
    calls = (n for n in ast.walk(node.value) if isinstance(n, ast.Call))
    return any(key_of(c.func) == name for c in calls)


_LOOP = """
from torch import nn
loss = nn.CrossEntropyLoss()
for x, y in loader:
    loss = loss(model(x), y)
    loss.backward()
"""

FIRES = {
    "a loss": make_failed_run(
        "TypeError: 'Tensor' object is not callable",
        "loss = loss(model(x), y)",
        sources={"train.py": _LOOP},
    ),
    "without the source": make_failed_run(
        "TypeError: 'float' object is not callable", "acc = acc(out, y)"
    ),
    "another line gave the name away": make_failed_run(
        "TypeError: 'Tensor' object is not callable", "loss = criterion(F.relu(out), target)"
    ),
    "nothing known": make_failed_run("TypeError: 'Tensor' object is not callable"),
}

SILENT = {
    "near miss: not subscriptable": make_failed_run(
        "TypeError: 'float' object is not subscriptable", "x = loss[0]"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
