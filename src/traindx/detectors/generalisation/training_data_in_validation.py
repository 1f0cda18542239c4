"""The loader that is called validation holds the training data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import Loader, loaders_in, phase_of, resolve
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.project import Project

SPLIT = ("Subset", "random_split", "SubsetRandomSampler", "sampler", "indices", "fold", "overfit")
SWITCHES = re.compile(r"^(?:set|use|switch|select|to)_|split|mode|phase|^(?:train|eval)$")
LOOKS = ("transform", "target_transform", "download")  # the same data, looked at otherwise


@detector(needs=("source",), suggests=("evaluating-on-training-data",))
def check(run: Run) -> Iterator[Finding]:
    """A loader named for validation or testing reads the training dataset.

    ## What it detects
    `val_loader = train_loader`; two loaders, one for training and one for validation, over the very
    same dataset object or tensors; a validation loader over a torchvision dataset made with
    `train=True`.

    ## Why it matters
    The metric says how well the training data are remembered. It looks excellent and says nothing
    about new data.

    ## What to do
    Hold data out: `random_split`, or the dataset's own test split.

    ## When it is wrong
    One dataset with samplers or subsets over different indices is right; files that split by index
    are left alone, and so is a deliberate check on training data that is named so, or that only
    happens under a condition. A dataset that is switched from one split to the other, or that draws
    new examples, may be the same object; the training split of another dataset is held-out data.
    """
    project = project_of(run)
    loaders = loaders_in(project)
    for module in project.training_modules:
        if any(word in module.text for word in SPLIT):
            continue
        yield from _aliases(project, module)
        own = [x for x in loaders if x.module is module and not x.has_sampler]
        for held in own:
            if phase_of(held.name) in ("val", "test"):
                yield from _same_dataset(project, held, own)


def _aliases(project: Project, module: Module) -> Iterator[Finding]:
    for node in module.nodes(ast.Assign):
        target, value = key_of(node.targets[0]) or "", node.value
        if not isinstance(value, (ast.Name, ast.Attribute)) or "loader" not in target.lower():
            continue
        source = key_of(value) or ""
        if _is_conditional(module, node) or len(project.lookup(module, node, target)) > 1:
            continue
        if phase_of(target) in ("val", "test") and phase_of(source) == "train":
            claim = f"`{target}` is `{source}`: validation runs on training data"
            yield _finding(module, node, claim, "the same loader under another name")


def _same_dataset(project: Project, held: Loader, own: list[Loader]) -> Iterator[Finding]:
    module = held.module
    key = key_of(held.dataset) if held.dataset is not None else None
    train = [x for x in own if phase_of(x.name) == "train" and x.scope is held.scope]
    for other in train:
        same = key is not None and isinstance(held.dataset, (ast.Name, ast.Attribute))
        if same and other.dataset is not None and key_of(other.dataset) == key:
            bound = project.lookup(module, held.call, key or "")
            if len(bound) == 1 and not _gives_other_data(project, module, key or "", bound[0]):
                claim = f"`{held.name}` and `{other.name}` read the same dataset `{key}`"
                yield _finding(module, held.call, claim, f"{key} is also the training data")
                return
        if _is_wrapped_alike(module, held.dataset, other.dataset) and held.dataset is not None:
            text = ast.unparse(held.dataset)
            claim = f"`{held.name}` and `{other.name}` both read `{text}`"
            yield _finding(module, held.call, claim, f"{text} is also the training data")
            return
    made = resolve(project, module, held.scope, held.dataset)
    known = [resolve(project, module, x.scope, x.dataset) for x in train]
    is_known = isinstance(made, ast.Call) and any(_is_same_data(made, k) for k in known)
    if isinstance(made, ast.Call) and is_known and _is_train_split(module, made):
        claim = f"`{held.name}` reads the training split: `train=True`"
        yield _finding(module, made, claim, "train=True for held-out data")


def _is_conditional(module: Module, node: ast.AST) -> bool:
    """Tell whether a statement runs in some runs only, as a fallback or to debug."""
    conditions = (n for n in module.enclosing(node) if isinstance(n, (ast.If, ast.Try)))
    return any(not isinstance(n, ast.If) or "__name__" not in ast.unparse(n.test)
               for n in conditions)  # fmt: skip


def _gives_other_data(project: Project, module: Module, key: str, made: ast.expr) -> bool:
    """Tell whether one dataset may give other examples to each loader: switched, or drawn anew."""
    for node in module.nodes(ast.Attribute):
        is_own = key_of(node.value) == key or (key_of(node.value) or "").endswith(".dataset")
        is_set = isinstance(node.ctx, ast.Store) and node.attr not in LOOKS
        above = module.parents.get(node)
        is_called = isinstance(above, ast.Call) and above.func is node
        if is_own and (is_set or (is_called and SWITCHES.search(node.attr))):
            return True
    name = module.qualified(made.func) if isinstance(made, ast.Call) else None
    found = project.find_class(module, name or "")
    return found is not None and _draws(found[1])


def _draws(cls: ast.ClassDef) -> bool:
    """Tell whether a dataset makes up its examples, whatever their index."""
    if any("Iterable" in ast.unparse(base) for base in cls.bases):
        return True
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__getitem__":
            index = method.args.args[-1].arg
            names = {n.id for n in ast.walk(method) if isinstance(n, ast.Name)}
            return index not in names
    return False


def _is_same_data(one: ast.Call, other: ast.expr | None) -> bool:
    """Tell whether two calls make the same dataset, but for how it is looked at."""
    return isinstance(other, ast.Call) and _identity(one) == _identity(other)


def _identity(made: ast.Call) -> tuple[str, ...]:
    named = sorted(ast.dump(k) for k in made.keywords if k.arg not in LOOKS)
    return ast.dump(made.func), *(ast.dump(a) for a in made.args), *named


def _is_wrapped_alike(module: Module, one: ast.expr | None, other: ast.expr | None) -> bool:
    """Tell whether two datasets hold the same tensors; a class of one's own may draw new ones."""
    if not isinstance(one, ast.Call) or other is None or not one.args:
        return False
    name = (module.qualified(one.func) or "").rpartition(".")[2]
    is_plain = name == "TensorDataset" and all(isinstance(a, ast.Name) for a in one.args)
    return is_plain and ast.dump(one) == ast.dump(other)


def _is_train_split(module: Module, made: ast.Call) -> bool:
    name = module.qualified(made.func) or ""
    is_torchvision = name.startswith("torchvision.datasets.")
    return is_torchvision and literal(argument(made, "train")) is True


def _finding(module: Module, node: ast.AST, claim: str, says: str) -> Finding:
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(module.cite(node, says),),
        shows="evaluating-on-training-data",
        is_symptom=True,
        location=module.location(node),
    )


_PROGRAM = """
from torch.utils.data import DataLoader
from torchvision import datasets

train_set = datasets.MNIST("data", train=True)
{made}
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = {val}
"""


def _program(val: str, made: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(val=val, made=made)})


FIRES = {
    "the same loader": _program("train_loader"),
    "the same dataset": _program("DataLoader(train_set, batch_size=32)"),
    "the same tensors": _program(
        "DataLoader(TensorDataset(x, y))\ntrain_loader = DataLoader(TensorDataset(x, y))",
        "from torch.utils.data import TensorDataset",
    ),
    "the training split": _program(
        "DataLoader(val_set, batch_size=32)", 'val_set = datasets.MNIST("data", train=True)'
    ),
}

_DRAWN = """
class Sums(Dataset):
    def __getitem__(self, index):
        return draw()

train_set = Sums()
"""


def _own(made: str, then: str = "") -> Run:
    text = _PROGRAM.format(val="DataLoader(train_set, batch_size=32)", made="")
    text = text.replace('train_set = datasets.MNIST("data", train=True)', made)
    return make_run(sources={"train.py": text + then})


SILENT = {
    "near miss: to debug": _program(
        "DataLoader(val_set)\nif args.debug:\n    val_loader = train_loader"
    ),
    "near miss: the same loader until there is another": _program(
        "train_loader\nif args.val:\n    val_loader = DataLoader(load(args.val))"
    ),
    "near miss: one dataset that is switched": _own(
        'train_set = News("news.csv")', 'train_set.set_split("val")'
    ),
    "near miss: switched by way of its loader": _own(
        'train_set = News("news.csv")', 'val_loader.dataset.part = "val"'
    ),
    "near miss: examples that are drawn anew": _own(_DRAWN),
    "near miss: the training split of another dataset": _program(
        "DataLoader(val_set, batch_size=32)", 'val_set = datasets.USPS("data", train=True)'
    ),
    "the test split": _program(
        "DataLoader(val_set, batch_size=32)", 'val_set = datasets.MNIST("data", train=False)'
    ),
    "near miss: other tensors": _program(
        "DataLoader(TensorDataset(x_val, y))\ntrain_loader = DataLoader(TensorDataset(x, y))",
        "from torch.utils.data import TensorDataset",
    ),
    "near miss: other indices": _program("DataLoader(train_set, sampler=val_sampler)"),
    "near miss: a random split": _program(
        "DataLoader(val_set, batch_size=32)",
        "train_set, val_set = random_split(train_set, [0.9, 0.1])",
    ),
}
