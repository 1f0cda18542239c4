"""Layers that a module builds and no code ever uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.module import Module
from traindx.source.shapes.structure import (
    Attribute,
    attributes,
    has_weights,
    is_self_contained,
    is_test_file,
    layer_name,
    names_read,
    own_method,
    uses_reflection,
)
from traindx.source.shapes.uses import model_classes

PARALLEL = re.compile(r"DistributedDataParallel|\bDDP\b|FullyShardedDataParallel|strategy=.ddp")


@detector(needs=("source",), suggests=("unused-parameters",))
def check(run: Run) -> Iterator[Finding]:
    """A module builds a layer that no code uses.

    ## What it detects
    An attribute of a module that holds a layer with weights and whose name is read nowhere in the
    sources, neither as an attribute nor inside of a text.

    ## Why it matters
    The weights never get a gradient. They cost memory, mislead the parameter count, and make
    DistributedDataParallel wait for gradients that do not come. Often the forward pass calls
    another layer twice where this one was meant.

    ## What to do
    Call the layer where it was meant, or delete it.

    ## When it is wrong
    Code that reaches layers by other ways (`children()`, `getattr`) is left alone; code outside of
    the files at hand may use the layer.
    """
    project = project_of(run)
    read = {name for module in project.modules for name in names_read(module.tree)}
    is_parallel = any(PARALLEL.search(module.text) for module in project.modules)
    for module, cls in model_classes(project):
        init = own_method(cls, "__init__")
        is_whole = own_method(cls, "forward") is not None and init is not None
        if not is_whole or is_test_file(module) or uses_reflection(cls):
            continue
        if not is_self_contained(project, module, cls):
            continue
        for attribute in attributes(init) if init is not None else ():
            if attribute.name not in read and _is_layer(project, module, attribute):
                yield _finding(module, cls, attribute, is_parallel=is_parallel)


def _is_layer(project: Project, module: Module, attribute: Attribute) -> bool:
    is_plain = layer_name(module, attribute.value) not in (None, "Parameter")
    return is_plain and has_weights(project, module, attribute.value)


def _finding(
    module: Module, cls: ast.ClassDef, attribute: Attribute, *, is_parallel: bool
) -> Finding:
    strength = Strength.MODERATE if is_parallel else Strength.WEAK
    line = attribute.node.lineno
    return Finding(
        claim=f"Layer self.{attribute.name} of {cls.name} is built and never used",
        strength=strength,
        evidence=(cite_source(module.path, line, f"no code reads .{attribute.name}"),),
        suggests={"unused-parameters": strength},
        location=Location(module.path, line, attribute.node.end_lineno or line),
    )


_NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 8)
        self.fc2 = nn.Linear(8, 8)

    def forward(self, x):
        {body}
"""


def _net(body: str) -> Run:
    return make_run(sources={"model.py": _NET.format(body=body)})


FIRES = {"a layer called twice in place of another": _net("return self.fc1(self.fc1(x))")}

SILENT = {
    "all are used": _net("return self.fc2(self.fc1(x))"),
    "near miss: reached by its name": _net("return getattr(self, 'fc2')(self.fc1(x))"),
    "near miss: reached as a child": _net("return [layer(x) for layer in self.children()][-1]"),
}
