"""A network of several layers that nothing bends between its first and its last."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, argument, key_of
from traindx.source.project import Project
from traindx.source.shapes.machine import Step
from traindx.source.shapes.structure import is_test_file
from traindx.source.shapes.tracing import Trace
from traindx.source.shapes.uses import follow, loose_chains, model_classes
from traindx.source.shapes.values import Layer, Tensor

WEIGHTED = ("Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d")
# what maps a sum to the sum of what it maps: steps of any other name may bend
STRAIGHT = frozenset(
    {
        *WEIGHTED, "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Dropout", "Dropout2d", "dropout",
        "Identity", "Flatten", "Unflatten", "AvgPool1d", "AvgPool2d", "AdaptiveAvgPool2d",
        "avg_pool2d", "Upsample", "flatten", "view", "reshape", "permute", "transpose", "t",
        "squeeze", "unsqueeze", "contiguous", "index", "cat", "stack", "chunk", "split", "expand",
        "repeat", "mean", "sum", "Add", "Sub", "USub", "add", "sub", "float", "to", "clone",
        "detach", "movedim", "swapaxes", "rearrange",
    }
)  # fmt: skip
SCALED = ("Mult", "Div", "mul", "div")  # straight while only one side comes from a layer
ENOUGH = 3  # layers: two make a factorised map, and that is often meant
MEANT = re.compile(r"linear|lora|adapter|factor|low_?rank|probe|pca|affine", re.IGNORECASE)


@detector(needs=("source",), suggests=("missing-nonlinearity",))
def check(run: Run) -> Iterator[Finding]:
    """Nothing between the first and the last of three or more layers is nonlinear.

    ## What it detects
    A model whose forward pass can be followed to its end, with at least three linear or
    convolutional layers and nothing on the way from the first to the last but sums, reshapes,
    means, dropout and batch normalisation. Also a `Sequential` over a list that a loop fills with
    linear layers, and that nothing nonlinear is ever put into.

    ## Why it matters
    However deep, it computes one linear map: it can learn no more than a single layer can.

    ## What to do
    Put an activation such as `torch.relu` after every layer but the last.

    ## When it is wrong
    Deep linear networks are studied, and low-rank maps are factorised; models with such names are
    left alone, and so are convolutions in groups, which factorise another one, and classes that
    another class makes use of, for what bends may follow there.
    """
    project = project_of(run)
    parts = _parts(project)
    for module, cls in model_classes(project):
        if is_test_file(module) or MEANT.search(cls.name) or cls.name in parts:
            continue
        found = [x for f in list(follow(project, module, cls))[:1] for x in _judge(f.trace)]
        yield from found or _filled_by_a_loop(module, cls)
    for module, trace in loose_chains(project):
        if not is_test_file(module):
            yield from _judge(trace)


def _parts(project: Project) -> set[str]:
    """Return the names that are called inside of classes: what they make is part of a model."""
    return {
        (key_of(call.func) or "").rpartition(".")[2]
        for module in project.modules
        for call in module.nodes(ast.Call)
        if module.class_of(call) is not None
    }


def _judge(trace: Trace) -> Iterator[Finding]:
    layers = _straight_layers(trace)
    if len({id(layer.node) for layer in layers}) < ENOUGH or any(map(_is_meant, layers)):
        return
    first, last = layers[0], layers[-1]
    says = f"{ast.unparse(first.node)} is the first of {len(layers)} layers"
    yield Finding(
        claim=f"{len(layers)} layers in a row are one linear map: nothing between them is "
        "nonlinear",
        strength=Strength.STRONG,
        evidence=(
            first.module.cite(first.node, says),
            last.module.cite(last.node, f"{ast.unparse(last.node)} is the last"),
        ),
        shows="missing-nonlinearity",
        is_symptom=True,
        location=first.module.location(first.node),
    )


def _filled_by_a_loop(module: Module, cls: ast.ClassDef) -> Iterator[Finding]:
    """A list of linear layers, grown in a loop and made into a chain, with nothing between them."""
    chained = {
        key_of(a.value)
        for call, name in module.calls(cls)
        if name.endswith(".Sequential")
        for a in call.args
        if isinstance(a, ast.Starred)
    }
    for listed in sorted(k for k in chained if k):
        put = [c for c, n in module.calls(cls) if n == f"{listed}.append" and c.args]
        kinds = {_kind(module, c.args[0]) for c in put}
        looped = [c for c in put if any(isinstance(n, ast.For) for n in module.enclosing(c))]
        layers = [c for c in looped if _kind(module, c.args[0]) == "Linear"]
        is_own = not _is_filled_otherwise(cls, listed)
        if layers and is_own and kinds <= STRAIGHT and not MEANT.search(listed):
            yield Finding(
                claim=f"`{listed}` is a chain of linear layers with nothing nonlinear in it",
                strength=Strength.STRONG,
                evidence=(module.cite(layers[0], "layer after layer is put in here, and no more"),),
                shows="missing-nonlinearity",
                is_symptom=True,
                location=module.location(layers[0]),
            )


def _kind(module: Module, node: ast.expr) -> str:
    name = (module.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
    is_layer = name.startswith(("torch.nn.", "nn."))
    return name.rsplit(".", 1)[-1] if is_layer else "?"


def _is_filled_otherwise(cls: ast.ClassDef, listed: str) -> bool:
    """Tell whether a list is filled by anything but `append`, or starts with something in it."""
    for node in ast.walk(cls):
        if isinstance(node, ast.AugAssign) and key_of(node.target) == listed:
            return True
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and key_of(node.func.value) == listed
            and node.func.attr != "append"
        ):
            return True
        if (
            isinstance(node, ast.Assign)
            and any(key_of(t) == listed for t in node.targets)
            and not (isinstance(node.value, ast.List) and not node.value.elts)
        ):
            return True
    return False


def _straight_layers(trace: Trace) -> list[Layer]:
    """Return the layers of a model that is linear as a whole; none where anything may bend."""
    if trace.gave_up is not None or trace.conflict is not None:
        return []
    found: list[Layer] = []
    behind: list[Tensor] = []  # what comes from a layer
    for step in trace.steps:
        taken = [t for t in step.taken if any(t is b for b in behind)]
        is_weighted = step.layer is not None and step.layer.kind in WEIGHTED
        if taken and not _is_straight(step, len(taken)):
            return []
        if is_weighted and found and not taken:
            return []  # a branch of its own, or what came from a layer went where none can follow
        if is_weighted and step.layer is not None:
            found.append(step.layer)
        if taken or is_weighted:
            behind += step.made
    return found


def _is_straight(step: Step, taken: int) -> bool:
    return step.operation in STRAIGHT or (step.operation in SCALED and taken == 1)


def _is_meant(layer: Layer) -> bool:
    above = layer.module.parents.get(layer.node)
    targets = above.targets if isinstance(above, ast.Assign) else []
    return argument(layer.node, "groups") is not None or any(
        MEANT.search(ast.unparse(t).rpartition(".")[2]) for t in targets
    )


_NET = """
import torch
from torch import nn
import torch.nn.functional as F

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(20, 64)
        self.mid = nn.Linear(64, 64)
        self.out = nn.Linear(64, 2)

    def forward(self, x, t):
        h = torch.cat([x, torch.sin(t)], 1)
        h = {act}(self.inp(h))
        h = h + {act}(self.mid(h))
        {more}
        return self.out(h)
"""
_USER = """
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Net()

    def forward(self, x, t):
        return F.relu(self.inner(x, t))
"""
_CNN = """
from torch import nn
model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8),{pool} nn.Conv2d(8, 16, 3), nn.Flatten(),
    nn.Linear(16 * 28 * 28, 10),
)
"""


def _net(act: str = "", more: str = "", name: str = "Net") -> Run:
    return make_run(sources={"model.py": _NET.format(act=act, more=more, name=name)})


_GROWN = """
from torch import nn

class Perceptron(nn.Module):
    def __init__(self, sizes, rate):
        super().__init__()
        layers = []
        for before, after in zip(sizes, sizes[1:]):
            layers.append(nn.Linear(before, after))
            {between}
        self.chain = nn.Sequential(*layers)

    def forward(self, x):
        return self.chain(x)
"""


def _grown(between: str) -> Run:
    return make_run(sources={"model.py": _GROWN.format(between=between)})


FIRES = {
    "grown in a loop": _grown("layers.append(nn.Dropout(rate))"),
    "with a skip connection": _net(),
    "scaled": _net(more="h = h * 0.5"),
    "convolutions": make_run(sources={"m.py": _CNN.format(pool="")}),
}

SILENT = {
    "near miss: grown in a loop, with activations": _grown("layers.append(nn.ReLU())"),
    "near miss: grown in a loop, with something out of sight": _grown("layers += make(after)"),
    "activations": _net("F.silu"),
    "near miss: normalised by layer": _net(more="h = F.layer_norm(h, (64,))"),
    "near miss: gated by itself": _net(more="h = h * h"),
    "near miss: max pooling bends": make_run(
        sources={"m.py": _CNN.format(pool=" nn.MaxPool2d(1),")}
    ),
    "near miss: a function of one's own": _net("Bend.apply"),
    "near miss: part of a model that bends": make_run(
        sources={"model.py": _NET.format(act="", more="", name="Net") + _USER}
    ),
    "near miss: convolutions in groups": make_run(
        sources={"m.py": _CNN.format(pool=" nn.Conv2d(8, 8, 3, groups=8),")}
    ),
    "near miss: linear on purpose": _net(name="DeepLinearNet"),
}
