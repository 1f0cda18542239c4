"""A module whose `__init__` does not initialise nn.Module before it is needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.module import Function, Module
from traindx.source.patches import diff, inserting_before, removing
from traindx.source.shapes.structure import attributes, is_test_file, layer_name, own_method
from traindx.source.shapes.uses import model_classes


@detector(needs=("source",), suggests=("missing-super-init",))
def check(run: Run) -> Iterator[Finding]:
    """A module's `__init__` assigns layers and never, or too late, calls `super().__init__()`.

    ## What it detects
    A class that derives from `nn.Module`, with an `__init__` of its own that assigns layers, and no
    call of the parent's `__init__` before the first of them.

    ## Why it matters
    The registries of layers do not exist yet: constructing the model fails.

    ## What to do
    Make `super().__init__()` the first statement.

    ## When it is wrong
    A class without an `__init__` of its own, and a dataclass, need no call. A parent's `__init__`
    that is called through a helper is not seen.
    """
    project = project_of(run)
    for module, cls in model_classes(project):
        init = own_method(cls, "__init__")
        if init is None or is_test_file(module) or cls.decorator_list or init.decorator_list:
            continue
        first = _first_layer(project, module, init)
        call = _parent_call(init)
        if first is None or _may_be_elsewhere(init):
            continue
        if call is not None and not _derives_directly(module, cls):
            continue  # a late call to a parent of one's own: templates that a generator unrolls
        if call is None or call.lineno > first.lineno:
            yield _finding(module, cls, init, first, call)


def _derives_directly(module: Module, cls: ast.ClassDef) -> bool:
    names = (module.qualified(base) or "" for base in cls.bases)
    return any(name == "torch.nn.Module" or name.endswith("nn.Module") for name in names)


def _first_layer(project: Project, module: Module, init: Function) -> ast.stmt | None:
    """The first statement that assigns a layer."""
    for attribute in attributes(init):
        found = project.find_class(
            module, module.qualified(getattr(attribute.value, "func", init)) or ""
        )
        is_own = found is not None and project.is_module(*found)
        if layer_name(module, attribute.value) is not None or is_own:
            return attribute.node
    return None


def _parent_call(init: Function) -> ast.Call | None:
    calls = [
        n
        for n in ast.walk(init)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in ("__init__", "__post_init__", "_init", "init")
    ]
    return min(calls, key=lambda c: c.lineno, default=None)


def _may_be_elsewhere(init: Function) -> bool:
    """Tell whether something that is called may initialise the parent: it gets `self`."""
    for node in ast.walk(init):
        if not isinstance(node, ast.Call) or isinstance(node.func, ast.Attribute):
            continue
        gets_self = any(isinstance(a, ast.Name) and a.id == "self" for a in node.args)
        name = getattr(node.func, "id", "")
        if gets_self and name not in ("super", "setattr", "isinstance", "print", "id", "type"):
            return True
    return False


def _finding(
    module: Module, cls: ast.ClassDef, init: Function, first: ast.stmt, call: ast.Call | None
) -> Finding:
    how = "without super().__init__()" if call is None else "before super().__init__()"
    evidence = [cite_source(module.path, first.lineno, f"a layer is assigned here {how}")]
    if call is not None:
        evidence.append(
            cite_source(module.path, call.lineno, "the parent is initialised only here")
        )
    return Finding(
        claim=f"Class {cls.name} assigns layers {how}",
        strength=Strength.STRONG,
        evidence=tuple(evidence),
        shows="missing-super-init",
        is_symptom=True,
        location=Location(module.path, first.lineno, first.end_lineno or first.lineno),
        patch=_patch(module, init, call),
    )


def _patch(module: Module, init: Function, call: ast.Call | None) -> str | None:
    """Put the call in front; one that comes too late is moved there."""
    body = init.body
    is_doc = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    first = body[1] if is_doc and len(body) > 1 else body[0]
    if call is None:
        return diff(module, inserting_before(module, first, "super().__init__()"))
    late = next((s for s in body if isinstance(s, ast.Expr) and s.value is call), None)
    if late is None:
        return None
    text = ast.get_source_segment(module.text, call) or "super().__init__()"
    return diff(module, inserting_before(module, first, text), removing(module, late))


_NET = """
from dataclasses import dataclass
from torch import nn

{decorator}
class Net(nn.Module):
    def __init__(self, width):
        {first}
        self.fc = nn.Linear(width, 10)
        {last}
"""


def _net(first: str, last: str = "self.width = width", decorator: str = "") -> Run:
    text = _NET.format(first=first, last=last, decorator=decorator)
    return make_run(sources={"model.py": text})


FIRES = {
    "no call": _net("self.depth = 1"),
    "too late": _net("self.depth = 1", "super().__init__()"),
}

SILENT = {
    "first of all": _net("super().__init__()"),
    "near miss: the old form": _net("super(Net, self).__init__()"),
    "near miss: by the parent's name": _net("nn.Module.__init__(self)"),
    "no __init__ of its own": make_run(
        sources={"m.py": "from torch import nn\nclass A(nn.Module):\n    layer = nn.ReLU()\n"}
    ),
}
