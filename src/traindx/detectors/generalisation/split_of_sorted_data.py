"""Data are sorted by their labels and then cut in two."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, key_of
from traindx.source.project import Project

SORTS = ("argsort", "sort", "sorted", "sort_values")
LABELS = frozenset({"y", "label", "labels", "target", "targets", "class", "classes", "category"})
# what the parts of a split are called, one to learn from and one to be judged by
PARTS = re.compile(
    r"(?:^|_)[xy]?(?:(?:train|valid|test|eval|held|hold)[a-z]*|trn?|va|val|dev|tst|te)(?:_|$)"
)
# parts that are meant to have classes of their own
ON_PURPOSE = re.compile(
    r"client|federat|non_?iid|shard|worker|node|task|incremental|continual|unseen|novel|zero_?shot"
    r"|few_?shot|open_?set|ood|outlier|anomal",
    re.IGNORECASE,
)


@detector(needs=("source",), suggests=("distribution-shift",))
def check(run: Run) -> Iterator[Finding]:
    """Data that were put in the order of their labels are split at an index.

    ## What it detects
    A name that is bound to itself in the order of an `argsort` of the labels, and that is then cut
    into `[:n]` and `[n:]` without being shuffled in between, where the second part is named for
    training, validation or testing, or made in a function that splits.

    ## Why it matters
    One part holds other classes than the other. What is learnt from the first says nothing about
    the second.

    ## What to do
    Shuffle before the split, or split within each class: `train_test_split(…, stratify=labels)`.

    ## When it is wrong
    A study of classes that were never seen splits by class on purpose, and so does one of clients
    or tasks that differ; where names say so, or name no such parts, the rule is silent.
    """
    project = project_of(run)
    for module in project.training_modules:
        for scope in (module.tree, *module.functions.values()):
            for name, node in _sorted_names(project, module, scope):
                cut = _cut(scope, name, node)
                if cut is not None and _is_held_out(module, cut):
                    yield _finding(module, name, node, cut)
                    break


def _sorted_names(
    project: Project, module: Module, scope: ast.AST
) -> Iterator[tuple[str, ast.Assign]]:
    """The names that are put in the order of labels, with the statement that does it."""
    for node in module.nodes(ast.Assign):
        if (module.function_of(node) or module.tree) is not scope:
            continue
        for target, value in _pairs(node):
            name = key_of(target)
            is_taken = isinstance(value, ast.Subscript) and key_of(value.value) == name
            if name and is_taken and isinstance(value, ast.Subscript):
                order = value.slice
                made = (
                    project.lookup(module, node, order.id)
                    if isinstance(order, ast.Name)
                    else [order]
                )
                if len(made) == 1 and _is_order_of_labels(made[0]):
                    yield name, node


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _is_order_of_labels(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = key_of(node.func) or ""
    if name.rsplit(".", 1)[-1] not in SORTS:
        return False
    sorted_by = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
    return any(_is_label(key_of(a) or "") for a in sorted_by)


def _is_label(key: str) -> bool:
    return bool(set(key.rsplit(".", 1)[-1].lower().strip("_").split("_")) & LABELS)


def _cut(scope: ast.AST, name: str, after: ast.Assign) -> ast.Subscript | None:
    """The second half of a cut at one index, before the name is bound anew."""
    bound = [
        n.lineno
        for n in ast.walk(scope)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    end = min((line for line in bound if line > after.lineno), default=10**9)
    slices = [
        n
        for n in ast.walk(scope)
        if isinstance(n, ast.Subscript) and key_of(n.value) == name
        and isinstance(n.slice, ast.Slice) and after.lineno < n.lineno <= end
    ]  # fmt: skip
    heads = {ast.dump(s.upper) for n in slices if (s := _slice(n)).upper and s.lower is None}
    tails = (n for n in slices if (s := _slice(n)).lower and ast.dump(s.lower) in heads)
    return next(tails, None)


def _is_held_out(module: Module, cut: ast.Subscript) -> bool:
    """Tell whether a cut parts what is learnt from what is judged by, and not by design."""
    statement, function = module.statement_of(cut), module.function_of(cut)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = [n for t in targets for p in ast.walk(t) if (n := key_of(p))]
    around = function.name if function is not None else ""
    if any(ON_PURPOSE.search(n) for n in (*names, around)):
        return False
    is_named = any(PARTS.search(re.sub(r"([A-Z])", r"_\1", n).lower()) for n in names)
    return is_named or "split" in around.lower()


def _slice(node: ast.Subscript) -> ast.Slice:
    return node.slice if isinstance(node.slice, ast.Slice) else ast.Slice()


def _finding(module: Module, name: str, node: ast.Assign, cut: ast.Subscript) -> Finding:
    return Finding(
        claim=f"`{name}` is sorted by label and then cut in two: each part has its own classes",
        strength=Strength.STRONG,
        evidence=(
            module.cite(node, f"`{ast.unparse(node)}`: in the order of the labels"),
            module.cite(cut, f"`{ast.unparse(cut)}`: the later classes"),
        ),
        shows="distribution-shift",
        is_symptom=True,
        location=module.location(node),
    )


_PROGRAM = """
import torch
from torch import nn

images, labels = load()
order = {order}
images, labels = images[order], labels[order]
{then}
train = torch.utils.data.TensorDataset(images[:1000], labels[:1000])
test = torch.utils.data.TensorDataset(images[{start}:], labels[{start}:])
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in torch.utils.data.DataLoader(train, shuffle=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
"""


def _program(order: str, then: str = "", start: str = "1000") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(order=order, then=then, start=start)})


FIRES = {
    "a method": _program("labels.argsort()"),
    "both at once": _program(
        "labels.argsort()", "x_train, x_test = images[:1000], images[1000:]", start="0"
    ),
    "a function": _program("torch.argsort(labels)"),
}

SILENT = {
    "near miss: clients that differ": _program(
        "labels.argsort()", "clients = [images[:1000], images[1000:]]", start="0"
    ),
    "near miss: classes that were never seen": _program(
        "labels.argsort()", "test_unseen = images[1000:]", start="0"
    ),
    "near miss: tasks one after the other": _program(
        "labels.argsort()", "first, second = images[:1000], images[1000:]", start="0"
    ),
    "shuffled": _program("torch.randperm(len(labels))"),
    "near miss: by time": _program("times.argsort()"),
    "near miss: shuffled afterwards": _program(
        "labels.argsort()", "mix = torch.randperm(9)\nimages, labels = images[mix], labels[mix]"
    ),
    "near miss: the cut is elsewhere": _program("labels.argsort()", start="0"),
}
