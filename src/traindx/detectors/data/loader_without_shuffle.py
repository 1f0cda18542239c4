"""The training loader reads its dataset in a fixed order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Do, acts_of
from traindx.source.loaders import Loader, loaders_in, resolve
from traindx.source.loops import training_loops
from traindx.source.module import Function, argument, key_of
from traindx.source.patches import Edit, diff, replacing
from traindx.source.project import Project

SORTED = frozenset({"ImageFolder", "DatasetFolder"})
MAPS = frozenset({"MNIST", "FashionMNIST", "CIFAR10", "CIFAR100", "SVHN", "STL10", "TensorDataset"})
ORDERED = re.compile(
    r"seq|token|text|corpus|lm\b|char|time|series|window|forecast|lstm|gpt|stateful|video|frame|"
    r"chrono|temporal|stream|curriculum|shuffle|permut",
    re.IGNORECASE,
)
# a training set is also read in order for its features, its statistics or a score
ASIDE = re.compile(
    r"eval|val|test|feat|embed|infer|pred|memory|bank|gallery|knn|stat|order|noshuf|no_shuf", re.I
)
LEARNS = re.compile(
    r"backward\(|\.step\(|\b(?:fit|train|training|update|optimi[sz]e|learn)_\w*\(|\.fit\(|"
    r"(?<!\.)\btrain\(|_step\("
)
LEARNER = re.compile(r"train|fit|prepare|setup|learn|engine|wrap", re.IGNORECASE)
PASSED_ON = frozenset({"enumerate", "tqdm", "iter", "zip", "cycle", "islice", "chain", "list"})


@detector(needs=("source",), suggests=("unshuffled-training-data",))
def check(run: Run) -> Iterator[Finding]:
    """A data loader for training neither shuffles nor samples.

    ## What it detects
    A loader named for training with `shuffle=False` or without the option, and without a sampler,
    over a dataset made in sight. Folders of images by class are sorted by class for certain; other
    datasets with random access are only remarked.

    ## Why it matters
    With data in the order of its classes every batch holds one class: the loss saws up and down and
    the model forgets each class while it sees the next.

    ## What to do
    `DataLoader(…, shuffle=True)`, or a sampler.

    ## When it is wrong
    Sequences that must stay in order, and data that was shuffled beforehand, are right without it;
    files that speak of sequences, time or shuffling are left alone unless the data is sorted. A
    loader that only reads the training set (for features, for a score beside the shuffled loader)
    is left alone, too.
    """
    project = project_of(run)
    for loader in loaders_in(project):
        if loader.phase != "train" or loader.shuffle is not False or loader.has_sampler:
            continue
        if ASIDE.search(loader.name) or not _is_trained_from(project, loader):
            continue
        made = resolve(project, loader.module, loader.scope, loader.dataset)
        name = _class_name(loader, made)
        if name in SORTED:
            yield _finding(loader, f"{name} lists its images class by class", is_sorted=True)
        elif _is_map(project, loader, name) and not _is_in_order(loader):
            yield _finding(loader, f"{name or 'its dataset'} is read in one fixed order")


def _is_trained_from(project: Project, loader: Loader) -> bool:
    """Tell whether a loader feeds training; one that nothing in its file uses is made for that."""
    uses = _uses(loader)
    loops = [n for u in uses if (n := _loop_over(loader, u)) is not None]
    if any(_is_learning_loop(project, loader, n) for n in loops):
        return True
    if any(_is_shuffled_twin(loader, other) for other in loaders_in(project)):
        return False
    others = [u for u in uses if _loop_over(loader, u) is None]
    return not uses or any(_is_handed_to_training(project, loader, u) for u in others)


def _uses(loader: Loader) -> list[ast.expr]:
    """Where the loader is read: itself where it has no name, else its name in its scope."""
    module, name = loader.module, loader.name
    if not name:
        return [loader.call]
    if isinstance(module.parents.get(loader.call), (ast.Return, ast.Dict)):
        return []
    named: list[ast.expr] = [*module.nodes(ast.Name), *module.nodes(ast.Attribute)]
    own = [n for n in named if key_of(n) == name and isinstance(getattr(n, "ctx", None), ast.Load)]
    return own if "." in name else [n for n in own if _is_in_scope(loader, n)]


def _is_in_scope(loader: Loader, use: ast.expr) -> bool:
    around = list(loader.module.enclosing(use))
    functions = around[: around.index(loader.scope)] if loader.scope in around else []
    spec = [n.args for n in functions if isinstance(n, Function)]
    hidden = {a.arg for s in spec for a in (*s.posonlyargs, *s.args, *s.kwonlyargs)}
    return loader.scope in around and loader.name not in hidden


def _loop_over(loader: Loader, use: ast.expr) -> ast.AST | None:
    """The loop or comprehension that goes through the loader."""
    child: ast.AST = use
    for above in loader.module.enclosing(use):
        if isinstance(above, (ast.For, ast.AsyncFor, ast.comprehension)):
            return above if above.iter is child else None
        if not _passes_on(above):
            return None
        child = above
    return None


def _passes_on(node: ast.AST | None) -> bool:
    """`enumerate(loader)` goes through the loader, too."""
    called = key_of(node.func) if isinstance(node, ast.Call) else None
    return (called or "").rsplit(".", 1)[-1] in PASSED_ON


def _is_learning_loop(project: Project, loader: Loader, loop: ast.AST) -> bool:
    acts = (a for t in training_loops(project) for a in t.does(Do.BACKWARD, Do.STEP))
    if any(loop in a.loops for a in acts):
        return True
    body = getattr(loop, "body", [])
    return any(LEARNS.search(ast.unparse(n)) for n in body)


def _is_shuffled_twin(loader: Loader, other: Loader) -> bool:
    """A loader of the training data that does shuffle: that one is for training."""
    is_mixed = other.shuffle is True or (other.has_sampler and other.shuffle is False)
    return other is not loader and other.phase == "train" and is_mixed


def _is_handed_to_training(project: Project, loader: Loader, use: ast.expr) -> bool:
    """Tell whether a use may lead to training: what reads or measures the data does not."""
    module, above = loader.module, loader.module.parents.get(use)
    while above is not None and (isinstance(above, ast.keyword) or _passes_on(above)):
        above = module.parents.get(above)
    if not isinstance(above, ast.Call):
        return not isinstance(above, (ast.Attribute, ast.Expr, ast.FormattedValue))
    if above.func is use:
        return False
    name = module.qualified(above.func) or ""
    function, cls = project.find_function(module, name), project.find_class(module, name)
    if function is not None:
        acts = acts_of(project, *function)
        is_taught = any(a.do in (Do.BACKWARD, Do.STEP) for a in acts)
        return is_taught or bool(LEARNS.search(ast.unparse(function[1])))
    if cls is not None:
        return bool(LEARNS.search(ast.unparse(cls[1])))
    return bool(LEARNER.search(name)) or _has_learner_behind(above)


def _has_learner_behind(call: ast.Call) -> bool:
    """`run(model, optimizer, loader)`: what gets an optimizer trains."""
    given = [key_of(a) or "" for a in (*call.args, *_values(call))]
    return any("opt" in name.lower() for name in given)


def _finding(loader: Loader, why: str, *, is_sorted: bool = False) -> Finding:
    cause = "unshuffled-training-data"
    return Finding(
        claim=f"The training loader does not shuffle: {why}",
        strength=Strength.STRONG if is_sorted else Strength.MODERATE,
        evidence=(loader.module.cite(loader.call, "no shuffle=True and no sampler here"),),
        suggests={} if is_sorted else {cause: Strength.MODERATE},
        shows=cause if is_sorted else None,
        is_symptom=is_sorted,
        location=loader.module.location(loader.call),
        patch=_patch(loader),
    )


def _class_name(loader: Loader, made: ast.expr | None) -> str:
    name = loader.module.qualified(made.func) if isinstance(made, ast.Call) else None
    return (name or "").rsplit(".", 1)[-1]


def _is_map(project: Project, loader: Loader, name: str) -> bool:
    if name in MAPS:
        return True
    found = project.find_class(loader.module, name) if name else None
    if found is None:
        return False
    home, cls = found
    methods = {n.name for n in cls.body if isinstance(n, ast.FunctionDef)}
    bases = {b.rsplit(".", 1)[-1] for b in project.bases(home, cls)}
    return "__getitem__" in methods and "__iter__" not in methods and "Dataset" in bases


def _is_in_order(loader: Loader) -> bool:
    """Tell whether the file gives a reason for a fixed order, or has shuffled already."""
    has_reason = bool(ORDERED.search(loader.module.text.replace("shuffle=False", "")))
    is_whole = any("len(" in ast.unparse(a) for a in (*loader.call.args[1:], *_values(loader.call)))
    is_split = "random_split" in loader.module.text or "train_test_split" in loader.module.text
    return has_reason or is_whole or is_split


def _values(call: ast.Call) -> list[ast.expr]:
    return [k.value for k in call.keywords]


def _patch(loader: Loader) -> str | None:
    given = argument(loader.call, "shuffle")
    if given is not None:
        return diff(loader.module, replacing(given, "True"))
    parts: list[ast.expr] = [*loader.call.args, *_values(loader.call)]
    if not parts:
        return None
    last = max(parts, key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0))
    line, end = last.end_lineno or last.lineno, last.end_col_offset or 0
    return diff(loader.module, Edit(line, end, line, end, ", shuffle=True"))


_PROGRAM = """
import torch
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.{dataset}
train_loader = DataLoader(data, batch_size=32{options})
"""
_FOLDER = 'ImageFolder("train")'


def _program(dataset: str, options: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(dataset=dataset, options=options)})


_FEATURES = """
import torch
from torch.utils.data import DataLoader
from torchvision import datasets

train_loader = DataLoader(datasets.ImageFolder("train"), batch_size=32)

@torch.no_grad()
def extract(loader):
    return torch.cat([net(x) for x, _ in loader])

bank = extract(train_loader)
"""
_LOOPED = """
import torch
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.ImageFolder("train")
train_loader = DataLoader(data, batch_size=32{options})
train_reader = DataLoader(data, batch_size=99)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(loader):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

train(train_loader)
score(train_reader)
"""


def _looped(options: str) -> Run:
    return make_run(sources={"train.py": _LOOPED.format(options=options)})


FIRES = {
    "a folder by class": _program(_FOLDER),
    "said so": _program(_FOLDER, ", shuffle=False"),
    "handed to a function that trains": _looped(""),
    "a remark": _program('MNIST("data", train=True)'),
}

SILENT = {
    "shuffled": _program(_FOLDER, ", shuffle=True"),
    "near miss: a sampler": _program(_FOLDER, ", sampler=sampler"),
    "near miss: decided at run time": _program(_FOLDER, ", shuffle=sampler is None"),
    "near miss: read for its features": make_run(sources={"train.py": _FEATURES}),
    "near miss: scored beside the shuffled one": _looped(", shuffle=True"),
    "near miss: validation": make_run(
        sources={
            "t.py": "from torch.utils.data import DataLoader\nfrom torchvision import datasets\n"
            "val_loader = DataLoader(datasets.ImageFolder('val'), batch_size=8)\n"
        }
    ),
}
