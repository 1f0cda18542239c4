"""A name meant a function, and now means a value."""

from __future__ import annotations

import ast
import builtins
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
# a name that a function assigns is its own throughout, also before the assignment
UNBOUND = re.compile(
    r"local variable '(\w+)' (?:referenced before assignment"
    r"|where it is not associated with a value)"
)
LIBRARIES = ("torch", "nn", "F", "np", "numpy", "math", "dist")
SELF_CALL = re.compile(r"^(\w+) = \1\(")


@detector(needs=("failure",), suggests=("name-shadowed", "api-misuse"))
def check(run: Run) -> Iterator[Finding]:
    """A value is called as if it were the function whose name it took.

    ## What it detects
    "'Tensor' object is not callable" and its kin for numbers, lists, strings and modules. With the
    source or the failing line: the assignment that gave the name away, such as
    `loss = loss(output, target)`. Where the function is defined outside, the same line fails at
    once: "local variable 'loss' referenced before assignment".

    ## Why it matters
    It works once and fails the second time, so the first batch passes.

    ## What to do
    Give the function a name of its own, such as `criterion`.

    ## When it is wrong
    A missing operator (`2(x)`) or an attribute that is no method reads the same. A local variable
    that only a loop without iterations would have set is told from a shadowed one by its line.
    """
    hit = match_root(run, MESSAGE, UNBOUND)
    if hit is None:
        return
    failure, found = hit
    if found.re is UNBOUND:
        yield from _unbound(run, failure, found[1])
        return
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


def _unbound(run: Run, failure: Failure, name: str) -> Iterator[Finding]:
    """A local variable is read that hides what the name means outside of the function."""
    site = site_of(run, failure)
    code = failure.frames[-1].code if failure.frames else ""
    own = re.match(rf"{name}\b[^=(]*=(?!=).*\b{name}\(", code) is not None
    outside = _meaning_outside(site, name) if site is not None else ""
    if not own and not outside:
        return
    inner = (site.function or site.module.tree) if site is not None else None
    taken = _bindings(inner, name) if inner is not None else []
    says = f"`{ast.unparse(taken[0])}` makes {name} a local variable{outside}" if taken else ""
    patch = apart(site.module, taken[0]) if site is not None and len(taken) == 1 else None
    culprit = Culprit(site.module, taken[0], says, patch) if site is not None and taken else None
    claim = f"The name {name} is read before the function's own assignment to that name"
    yield explain(run, failure, claim, shows="name-shadowed", culprit=culprit)


def _meaning_outside(site: Site, name: str) -> str:
    """Say what a name means around a function; empty where it means nothing there."""
    if site.function is None:
        return ""
    module = site.module
    if name in module.aliases:
        return f" and hides the imported {module.aliases[name]}"
    if name in module.functions or name in module.classes:
        return f" and hides the {name} that is defined in the file"
    is_global = any(module.function_of(n) is None for n in _bindings(module.tree, name))
    if is_global:
        return f" and hides the global {name}"
    return f" and hides the built-in {name}" if hasattr(builtins, name) else ""


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

_IMPORTED = """
from losses import nt_xent
def main():
    for a, b in loader:
        nt_xent = nt_xent(a, b)
        nt_xent.backward()
"""
_EMPTY = """
def train(model, loader):
    for x, y in loader:
        loss = criterion(model(x), y)
    return loss.item()
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
    "a function of another file": make_failed_run(
        "UnboundLocalError: cannot access local variable 'nt_xent' where it is not associated with "
        "a value",
        "nt_xent = nt_xent(a, b)",
        sources={"train.py": _IMPORTED},
    ),
    "a global that is counted up": make_failed_run(
        "UnboundLocalError: local variable 'step' referenced before assignment",
        "step = step + 1",
        sources={"train.py": "step = 0\ndef tick():\n    step = step + 1\n"},
    ),
    "nothing known": make_failed_run("TypeError: 'Tensor' object is not callable"),
}

SILENT = {
    "near miss: a loop that never ran": make_failed_run(
        "UnboundLocalError: local variable 'loss' referenced before assignment",
        "return loss.item()",
        sources={"train.py": _EMPTY},
    ),
    "near miss: not subscriptable": make_failed_run(
        "TypeError: 'float' object is not subscriptable", "x = loss[0]"
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
