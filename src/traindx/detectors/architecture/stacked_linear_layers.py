"""Linear layers that follow each other without anything nonlinear between them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.patches import diff, replacing
from traindx.source.shapes.machine import Step
from traindx.source.shapes.structure import is_test_file, prefix_of
from traindx.source.shapes.tracing import Trace
from traindx.source.shapes.uses import follow, loose_chains, model_classes
from traindx.source.shapes.values import Layer

# layers that are linear on purpose say so in their names
MEANT = re.compile(
    r"lora|adapter|proj|down|up_|bottleneck|factor|low_?rank|head|embed|query|value|key|logvar"
    r"|\bmu\b|latent|linear_probe|logit|tied|deep_?linear|linear_?(net|model|map|auto)",
    re.IGNORECASE,
)
MEANT_BY_MAKER = re.compile(r"lora|adapter|factor|low_?rank|deep_?linear|linear_?(net|model|map)")
CHAIN = 2  # pairs in a row: three linear layers that are one


@detector(needs=("source",), suggests=("missing-nonlinearity",))
def check(run: Run) -> Iterator[Finding]:
    """Linear layers follow each other without a nonlinearity between them.

    ## What it detects
    A linear layer whose output goes to the next linear layer and nowhere else, directly or through
    dropout, where the middle is as wide as one of its ends.

    ## Why it matters
    Two linear maps in a row are one linear map: the depth adds parameters and nothing else.

    ## What to do
    Put an activation between them.

    ## When it is wrong
    Factorised layers, adapters, projections and linear networks do it on purpose; narrow middles
    and layers with such names are left alone.
    """
    project = project_of(run)
    traces = [
        f.trace
        for module, cls in model_classes(project)
        if not is_test_file(module)
        for f in follow(project, module, cls)
    ]
    traces += [trace for module, trace in loose_chains(project) if not is_test_file(module)]
    seen: set[ast.Call] = set()
    for trace in traces:
        pairs = [p for p in _pairs(trace) if p[0].node not in seen]
        seen |= {first.node for first, _ in pairs}
        for first, second in pairs[:1]:
            yield _finding(first, second, len(pairs))


def _pairs(trace: Trace) -> Iterator[tuple[Layer, Layer]]:
    """Yield the linear layers whose output only the next linear layer takes."""
    if trace.gave_up is not None or trace.conflict is not None:
        return
    for step in trace.steps:
        after = _only_user(trace, step) if _is_linear(step) else None
        while after is not None and after.operation in ("Dropout", "Identity", "dropout"):
            after = _only_user(trace, after)
        if after is None or not _is_linear(after):
            continue
        first, second = step.layer, after.layer
        if first is None or second is None or first is second:
            continue
        if _is_wide(first, second) and not _is_meant(first, second):
            yield first, second


def _is_linear(step: Step) -> bool:
    return step.layer is not None and step.layer.kind == "Linear" and len(step.taken) == 1


def _only_user(trace: Trace, step: Step) -> Step | None:
    users = [s for s in trace.steps if any(t is step.made[0] for t in s.taken)] if step.made else []
    return users[0] if len(users) == 1 and len(users[0].taken) == 1 else None


def _is_wide(first: Layer, second: Layer) -> bool:
    start, middle, end = (
        first.number("in_features"), first.number("out_features"), second.number("out_features")
    )  # fmt: skip
    sizes = [s for s in (start, middle, end) if isinstance(s, int)]
    return len(sizes) == 3 and sizes[1] >= min(sizes[0], sizes[2]) and sizes[1] > 1


def _is_meant(first: Layer, second: Layer) -> bool:
    for layer in (first, second):
        around = [layer.node, *layer.module.enclosing(layer.node)]
        maker = layer.module.function_of(layer.node)
        if maker is not None and MEANT_BY_MAKER.search(maker.name):
            return True
        for node in around[:3]:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(MEANT.search(ast.unparse(t)) for t in targets):
                return True
        cls = layer.module.class_of(layer.node)
        if cls is not None and MEANT.search(cls.name):
            return True
    return False


def _finding(first: Layer, second: Layer, count: int) -> Finding:
    strength = Strength.MODERATE if count >= CHAIN else Strength.WEAK
    node = first.node
    path = first.module.path
    return Finding(
        claim=f"Linear layers on lines {node.lineno} and {second.node.lineno} follow each other "
        "without a nonlinearity",
        strength=strength,
        evidence=(
            cite_source(path, node.lineno, f"{ast.unparse(node)} goes straight to the next"),
            cite_source(second.module.path, second.node.lineno, ast.unparse(second.node)),
        ),
        suggests={"missing-nonlinearity": strength},
        location=Location(path, node.lineno, node.end_lineno or node.lineno),
        patch=_patch(first),
    )


def _patch(first: Layer) -> str | None:
    """Add an activation where the layer stands in a nn.Sequential."""
    parent = first.module.parents.get(first.node)
    is_chain = isinstance(parent, ast.Call) and ast.unparse(parent.func).endswith("Sequential")
    text = ast.get_source_segment(first.module.text, first.node)
    if not is_chain or text is None:
        return None
    line = first.module.lines[first.node.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    is_alone = line.strip().startswith(text.split("\n", 1)[0])
    gap = f",\n{indent}" if is_alone else ", "
    return diff(first.module, replacing(first.node, f"{text}{gap}{prefix_of(first.node)}ReLU()"))


_NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, {width})
        self.fc2 = nn.Linear({width}, 128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x):
        x = {first}(self.fc1(x))
        x = {first}(self.fc2(x))
        return self.fc3(x)
"""
_CHAIN = """
from torch import nn
model = nn.Sequential(
    nn.Linear(784, 256),
    {more}
    nn.Linear(256, 10),
)
"""
_NARROW = """
from torch import nn
model = nn.Sequential(nn.Linear(512, 8), nn.Linear(8, 512))
"""


def _net(first: str, width: int = 256, name: str = "Net") -> Run:
    text = _NET.format(first=first, width=width).replace("class Net", f"class {name}")
    return make_run(sources={"model.py": text})


FIRES = {
    "three in a row": _net(""),
    "two in a chain": make_run(sources={"model.py": _CHAIN.format(more="nn.Dropout(0.1),")}),
}

SILENT = {
    "an activation between": _net("torch.relu"),
    "near miss: a deep linear network, as it is studied": _net("", name="DeepLinearNetwork"),
    "near miss: a module as activation": make_run(
        sources={"model.py": _CHAIN.format(more="nn.GELU(),")}
    ),
    "near miss: a narrow middle factorises": make_run(sources={"m.py": _NARROW}),
}
