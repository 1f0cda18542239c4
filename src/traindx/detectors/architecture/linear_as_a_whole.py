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
from traindx.source.shapes.structure import is_test_file, own_method, uses_reflection
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
# of a whole chain; that its name has `linear` in it says nothing: `linear_relu_stack`
CHAIN_MEANT = re.compile(
    r"deep_?linear|linear_?(net|model|map|auto)|lora|adapter|factor|low_?rank|probe|pca|affine",
    re.IGNORECASE,
)


@detector(needs=("source",), suggests=("missing-nonlinearity",))
def check(run: Run) -> Iterator[Finding]:
    """Nothing between the first and the last of three or more layers is nonlinear.

    ## What it detects
    A model whose forward pass can be followed to its end, with at least three linear or
    convolutional layers one behind the other and nothing on the way from the first to the last but
    sums, reshapes, means, dropout and batch normalisation. Also a `Sequential` over a list that a
    loop fills with linear layers, that nothing nonlinear is ever put into, and that is called as a
    whole.

    ## Why it matters
    However deep, it computes one linear map: it can learn no more than a single layer can.

    ## What to do
    Put an activation such as `torch.relu` after every layer but the last.

    ## When it is wrong
    Deep linear networks are studied, and low-rank maps are factorised; models with such names are
    left alone, and so are convolutions in groups, which factorise another one, and classes that
    another class makes use of, for what bends may follow there. Heads on one trunk that compresses
    are not deep, and a chain whose layers are called one by one may bend between them: both are
    left alone.
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
        claim=f"{len(layers)} layers are one linear map: nothing between them is nonlinear",
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
    chains = {
        key: call
        for call, name in module.calls(cls)
        if name.endswith(".Sequential")
        for a in call.args
        if isinstance(a, ast.Starred) and (key := key_of(a.value))
    }
    for listed in sorted(chains):
        put = [c for c, n in module.calls(cls) if n == f"{listed}.append" and c.args]
        kinds = {_kind(module, c.args[0]) for c in put}
        looped = [c for c in put if any(isinstance(n, ast.For) for n in module.enclosing(c))]
        layers = [c for c in looped if _kind(module, c.args[0]) == "Linear"]
        is_own = not _is_filled_otherwise(cls, listed) and _is_only_grown(module, cls, listed)
        is_whole = is_own and _is_called_whole(module, cls, chains[listed])
        if layers and is_whole and kinds <= STRAIGHT and not MEANT.search(listed):
            yield Finding(
                claim=f"`{listed}` is a chain of linear layers with nothing nonlinear in it",
                strength=Strength.STRONG,
                evidence=(module.cite(layers[0], "layer after layer is put in here, and no more"),),
                shows="missing-nonlinearity",
                is_symptom=True,
                location=module.location(layers[0]),
            )


def _is_only_grown(module: Module, cls: ast.ClassDef, listed: str) -> bool:
    """Tell whether a list is read for nothing but to add to it and to make a chain of it."""
    for node in ast.walk(cls):
        is_read = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if is_read and key_of(node) == listed:
            above = module.parents.get(node)
            is_grown = isinstance(above, ast.Attribute) and above.attr == "append"
            if not is_grown and not isinstance(above, ast.Starred):
                return False
    return True


def _is_called_whole(module: Module, cls: ast.ClassDef, chain: ast.Call) -> bool:
    """Tell whether a chain is only ever called, and never taken apart layer by layer."""
    forward = own_method(cls, "forward")
    names = _names_of_chain(module, cls, chain)
    if not names or forward is None or uses_reflection(forward):
        return False
    for node in ast.walk(cls):
        is_read = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if is_read and key_of(node) in names:
            above = module.parents.get(node)
            if not isinstance(above, ast.Call) or above.func is not node:
                return False
    return True


def _names_of_chain(module: Module, cls: ast.ClassDef, chain: ast.Call) -> set[str]:
    """Return the names a chain is kept under; through the method that returns it."""
    above = module.parents.get(chain)
    if isinstance(above, ast.Assign):
        return {key for t in above.targets if (key := key_of(t))}
    maker = module.function_of(chain) if isinstance(above, ast.Return) else None
    return {
        key
        for node in ast.walk(cls)
        if maker is not None and isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        and key_of(node.value.func) == f"self.{maker.name}"
        for target in node.targets
        if (key := key_of(target))
    }  # fmt: skip


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
    """Return the longest row of layers in a model that is linear as a whole.

    None where anything may bend. Layers side by side, as heads on one trunk, make no row; but a
    trunk that widens its input for them was to bend, and then all of them are returned.
    """
    if trace.gave_up is not None or trace.conflict is not None:
        return []
    rows: list[tuple[Tensor, list[Layer]]] = []  # what comes from layers, and from which in a row
    for step in trace.steps:
        taken = [row for t in step.taken for made, row in rows if t is made]
        layer = step.layer if step.layer is not None and step.layer.kind in WEIGHTED else None
        if taken and not _is_straight(step, len(taken)):
            return []
        if layer is not None and rows and not taken:
            return []  # a branch of its own, or what came from a layer went where none can follow
        if taken or layer is not None:
            row = [*max(taken, key=len, default=[]), *([] if layer is None else [layer])]
            rows += [(made, row) for made in step.made]
    longest = max((row for _, row in rows), key=len, default=[])
    every = list({id(x.node): x for _, row in rows for x in row}.values())
    return every if len(longest) == 2 and _widens(longest[0]) else longest


def _widens(layer: Layer) -> bool:
    """Tell whether a layer has more outputs than inputs: one with fewer may just compress."""
    before, after = layer.number("in_features"), layer.number("out_features")
    return isinstance(before, int) and isinstance(after, int) and after > before


def _is_straight(step: Step, taken: int) -> bool:
    return step.operation in STRAIGHT or (step.operation in SCALED and taken == 1)


def _is_meant(layer: Layer) -> bool:
    if argument(layer.node, "groups") is not None:
        return True
    is_single = isinstance(layer.module.parents.get(layer.node), ast.Assign)
    statement = layer.module.statement_of(layer.node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    maker = layer.module.function_of(layer.node)
    pattern = MEANT if is_single else CHAIN_MEANT
    return (maker is not None and bool(CHAIN_MEANT.search(maker.name))) or any(
        pattern.search(ast.unparse(t).rpartition(".")[2]) for t in targets
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
        {forward}
"""
_ONE_BY_ONE = """for layer in self.chain[:-1]:
            x = layer(x).relu()
        return self.chain[-1](x)"""
_HEADS = """
from torch import nn

class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear({wide}, 64)
        self.mood = nn.Linear(64, 3)
        self.topic = nn.Linear(64, 20)

    def forward(self, x):
        h = self.trunk(x)
        return self.mood(h), self.topic(h)
"""


def _grown(between: str, forward: str = "return self.chain(x)") -> Run:
    return make_run(sources={"model.py": _GROWN.format(between=between, forward=forward)})


FIRES = {
    "grown in a loop": _grown("layers.append(nn.Dropout(rate))"),
    "with a skip connection": _net(),
    "scaled": _net(more="h = h * 0.5"),
    "two heads on a trunk that widens": make_run(sources={"model.py": _HEADS.format(wide=4)}),
    "convolutions": make_run(sources={"m.py": _CNN.format(pool="")}),
}

SILENT = {
    "near miss: grown in a loop, with activations": _grown("layers.append(nn.ReLU())"),
    "near miss: grown in a loop, called layer by layer": _grown("pass", _ONE_BY_ONE),
    "near miss: two heads side by side": make_run(sources={"model.py": _HEADS.format(wide=768)}),
    "near miss: a chain that is linear on purpose": make_run(
        sources={"m.py": _CNN.format(pool="").replace("model =", "deep_linear =")}
    ),
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
