"""A classifier whose outputs are not as many as the classes of its dataset."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.arguments import handed_over
from traindx.source.losses import losses_in
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.patches import diff, replacing
from traindx.source.shapes.datasets import class_count
from traindx.source.shapes.structure import is_test_file
from traindx.source.shapes.tracing import Trace
from traindx.source.shapes.uses import called_models
from traindx.source.shapes.values import Layer

LOSSES = frozenset({"CrossEntropyLoss", "NLLLoss", "cross_entropy", "nll_loss"})
# code that may give a dataset other labels than its own
RELABELS = frozenset({"targets", "labels", "classes", "class_to_idx", "_labels"})
# what labels go through on their way to the loss and stay the same
MOVES = frozenset(
    {"to", "cuda", "cpu", "long", "type", "view", "reshape", "squeeze", "flatten", "detach",
     "contiguous", "type_as"}
)  # fmt: skip
DEEP = 6  # names and calls followed back from a loss


@detector(needs=("source",), suggests=("output-size-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """A classifier has other outputs than its dataset has classes.

    ## What it detects
    A dataset whose classes are known (MNIST and CIFAR10 have 10, CIFAR100 has 100), a loss that
    takes one logit per class and the labels as the loop over the data gives them, and a model whose
    forward pass ends in another number.

    ## Why it matters
    With too few outputs the first label beyond them fails, on a GPU with an assert in a place far
    off. With too many, training works towards classes that never occur.

    ## What to do
    Build the last layer for the number of classes.

    ## When it is wrong
    Labels that are regrouped, filtered or extended are not followed; code that touches them is left
    alone, and so is a task that makes its own, such as telling by how much an image was turned.
    """
    project = project_of(run)
    known = class_count(project)
    if known is None or not _has_class_loss(project) or _relabels(project):
        return
    if not _learns_the_labels(project):
        return
    count, name, module, call = known
    models = [(m, t) for m, t in called_models(project) if not is_test_file(m)]
    for _, trace in models if len(models) == 1 else ():
        outputs = _outputs(trace)
        if outputs is None or outputs[0] in (count, 1):
            continue
        size, layer = outputs
        yield _finding(size, count, layer, cite=(module.path, call.lineno, name))


def _has_class_loss(project: Project) -> bool:
    names = (n.rsplit(".", 1)[-1] for m in project.modules for _, n in m.calls())
    return any(n in LOSSES for n in names)


def _relabels(project: Project) -> bool:
    for module in project.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr in RELABELS:
                return True
            if isinstance(node, ast.Call) and "Subset" in (module.qualified(node.func) or ""):
                return True
            if isinstance(node, ast.keyword) and node.arg == "collate_fn":
                return True
            if isinstance(node, ast.FunctionDef) and node.name == "__getitem__":
                return True  # a dataset of one's own around the known one
    return False


def _learns_the_labels(project: Project) -> bool:
    """Tell whether every loss over classes takes the labels that a loop over the data gives."""
    losses = [x for x in losses_in(project) if x.label in LOSSES or x.act.value.call is None]
    return bool(losses) and all(
        loss.target is not None and _is_label(project, loss.module, loss.scope, loss.target)
        for loss in losses
    )


def _is_label(
    project: Project, module: Module, at: ast.AST, node: ast.expr, depth: int = DEEP
) -> bool:
    """Tell whether a value is what a loop gives beside its samples, changed by moves at most."""
    node = _unmoved(node)
    if depth == 0:
        return False
    if isinstance(node, ast.Subscript):  # `batch[1]`
        return literal(node.slice) in (1, -1, "label", "labels") and _is_looped(module, node)
    if not isinstance(node, ast.Name):
        return False
    line = node.lineno
    made = [v for v in project.lookup(module, at, node.id) if v.lineno < line and v is not node]
    if _is_looped(module, node):
        made = [v for v in made if not _is_itself(v, node.id) and _is_in_its_loop(module, v, node)]
        return not made
    if not made:
        handed = handed_over(project, module, at, node.id)
        return bool(handed) and all(_is_label(project, *h, depth - 1) for h in handed)
    own = [v for v in made if not _is_itself(v, node.id)]
    return bool(own) and all(
        _is_unpacked_last(module, v, node.id) or _is_label(project, module, at, v, depth - 1)
        for v in own
    )


def _unmoved(node: ast.expr) -> ast.expr:
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in MOVES
    ):
        node = node.func.value
    return node


def _is_itself(value: ast.expr, name: str) -> bool:
    """Tell whether an assignment only moves a name: `y = y.to(device)`."""
    inner = _unmoved(value)
    return isinstance(inner, ast.Name) and inner.id == name


def _loops_around(module: Module, node: ast.AST) -> list[ast.For]:
    return [n for n in module.enclosing(node) if isinstance(n, ast.For)]


def _is_looped(module: Module, node: ast.expr) -> bool:
    """Tell whether a loop around a name gives its value."""
    key = key_of(node)
    targets = [n.target for n in _loops_around(module, node)]
    return any(key_of(n) == key for target in targets for n in ast.walk(target))


def _is_in_its_loop(module: Module, value: ast.expr, use: ast.expr) -> bool:
    return bool(set(_loops_around(module, value)) & set(_loops_around(module, use)))


def _is_unpacked_last(module: Module, value: ast.expr, name: str) -> bool:
    """Tell whether a name is the last part of a batch: `x, y = batch`."""
    above = module.parents.get(value)
    targets = above.targets if isinstance(above, ast.Assign) and above.value is value else []
    lasts = {key_of(t.elts[-1]) for t in targets if isinstance(t, (ast.Tuple, ast.List)) if t.elts}
    given = _unmoved(value)
    is_drawn = isinstance(given, ast.Call) and key_of(given.func) == "next"
    is_batch = isinstance(given, ast.Name) and _is_looped(module, given)
    return name in lasts and (is_drawn or is_batch)


def _outputs(trace: Trace) -> tuple[int, Layer] | None:
    """The last size of the only output, and the linear layer that made it."""
    if trace.gave_up or trace.conflict or len(trace.output) != 1 or not trace.output[0].sizes:
        return None
    shape, last = trace.output[0], trace.output[0].sizes[-1]
    if not isinstance(last, int) or not (shape.is_open or len(shape.sizes) == 2):
        return None
    for step in reversed(trace.steps):
        if step.layer is not None and "kernel_size" in step.layer.options:
            return None
        if step.layer is not None and step.layer.kind == "Linear":
            is_it = step.layer.number("out_features") == last
            return (last, step.layer) if is_it else None
    return None


def _finding(size: int, count: int, layer: Layer, cite: tuple[str, int, str]) -> Finding:
    path, line, name = cite
    is_few = size < count
    effect = "labels beyond them will fail" if is_few else "the rest never occur"
    node = layer.node
    return Finding(
        claim=f"The model ends in {size} outputs and {name} has {count} classes: {effect}",
        strength=Strength.STRONG if is_few else Strength.MODERATE,
        evidence=(
            cite_source(layer.module.path, node.lineno, f"the last layer has {size} outputs"),
            cite_source(path, line, f"{name} has {count} classes"),
        ),
        shows="output-size-mismatch" if is_few else None,
        suggests={} if is_few else {"output-size-mismatch": Strength.MODERATE},
        is_symptom=is_few,
        location=Location(layer.module.path, node.lineno, node.end_lineno or node.lineno),
        patch=_patch(layer, count),
    )


def _patch(layer: Layer, count: int) -> str | None:
    node = argument(layer.node, "out_features", 1)
    is_number = isinstance(node, ast.Constant)
    return diff(layer.module, replacing(node, str(count))) if node and is_number else None


_TRAIN = """
import torch
from torch import nn
from torchvision import datasets, transforms

class Net(nn.Module):
    def __init__(self, classes={default}):
        super().__init__()
        self.fc1 = nn.Linear(3072, 256)
        self.fc2 = nn.Linear(256, {classes})

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))

data = datasets.CIFAR100("data", transform=transforms.ToTensor(){more})
loader = torch.utils.data.DataLoader(data, batch_size=32)
model = Net()
criterion = nn.CrossEntropyLoss()
for x, y in loader:
    {before}
    loss = criterion(model(x), {target})
    loss.backward()
"""


def _train(
    classes: str, default: int = 100, more: str = "", target: str = "y", before: str = "pass"
) -> Run:
    text = _TRAIN.format(classes=classes, default=default, more=more, target=target, before=before)
    return make_run(sources={"train.py": text})


_TURNED = "x, turns = turn_by_quarters(x)"

FIRES = {
    "labels that are moved": _train("10", before="x, y = x.cuda(), y.cuda()"),
    "ten outputs for a hundred classes": _train("10"),
    "by default": _train("classes", 10),
}

SILENT = {
    "as many as classes": _train("100"),
    "near miss: a parameter of the right value": _train("classes", 100),
    "near miss: labels of one's own": _train("4", target="turns", before=_TURNED),
    "near miss: labels made of the labels": _train("2", target="(y > 50).long()"),
    "near miss: labels made of the labels, by name": _train("20", before="y = y // 5"),
    "near miss: labels are regrouped": _train("20", more=", target_transform=coarse"),
}
