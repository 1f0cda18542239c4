"""The evaluation is handed the training data, and the held-out data lie idle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Do, acts_of
from traindx.source.loaders import Loader, loaders_in, phase_of
from traindx.source.module import Function, Module, key_of
from traindx.source.patches import diff, replacing
from traindx.source.phases import LEARNS, is_without_gradients
from traindx.source.project import Project

EVALUATES = frozenset({"validate", "test", "evaluate"})  # of a framework's trainer
NO_SCORE = re.compile(r"bn|norm|calibrat|feature|embed|extract|collect|warm|init|train", re.I)


@detector(needs=("source",), suggests=("evaluating-on-training-data",))
def check(run: Run) -> Iterator[Finding]:
    """An evaluation is given the training loader, and the held-out loader is never used.

    ## What it detects
    A loader named for validation or testing that nothing reads, beside a call that hands the
    training loader to a function that runs the model, learns nothing and gives a result back, or to
    the `validate` of a trainer; and a `Trainer` whose `eval_dataset` is its `train_dataset`.

    ## Why it matters
    The metric says how well the training data are remembered. It looks excellent and says nothing
    about new data.

    ## What to do
    Hand over the held-out loader, which is made and waits.

    ## When it is wrong
    A metric on training data beside one on held-out data is right; there the held-out loader is
    read somewhere, and nothing is said.
    """
    project = project_of(run)
    yield from _same_datasets(project)
    loaders = loaders_in(project)
    names = {x.name for x in loaders if phase_of(x.name) == "train"}
    idle = [x for x in loaders if phase_of(x.name) in ("val", "test") and _is_idle(project, x)]
    for held in idle[:1]:
        for call, given in _evaluations(project, held.module, names):
            yield _finding(held, call, given)
            return


def _is_idle(project: Project, loader: Loader) -> bool:
    """Tell whether a loader is bound to a plain name that stands nowhere else."""
    if not loader.name.isidentifier():
        return False
    is_local = loader.module.function_of(loader.call) is not None
    word = re.compile(rf"\b{loader.name}\b")
    texts = [m.text for m in ((loader.module,) if is_local else project.modules)]
    return sum(len(word.findall(text)) for text in texts) == 1


def _evaluations(
    project: Project, module: Module, trained_on: set[str]
) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that evaluate, each with the training loader that it is given."""
    for call, name in module.calls():
        given = [a for a in (*call.args, *(k.value for k in call.keywords))
                 if isinstance(a, ast.Name) and a.id in trained_on]  # fmt: skip
        if not given or isinstance(module.parents.get(call), ast.For):
            continue
        func = call.func
        is_trainer = isinstance(func, ast.Attribute) and "trainer" in (key_of(func.value) or "")
        if is_trainer and isinstance(func, ast.Attribute) and func.attr in EVALUATES:
            yield call, given[0]
            continue
        found = project.find_function(module, name) if name else None
        is_used = not isinstance(module.parents.get(call), ast.Expr)
        if found is not None and is_used and _evaluates(project, *found):
            yield call, given[0]


def _evaluates(project: Project, module: Module, function: Function) -> bool:
    if NO_SCORE.search(function.name):
        return False
    acts = acts_of(project, module, function)
    forward = [a for a in acts if a.do is Do.FORWARD]
    is_off = any(a.do is Do.EVAL_MODE for a in acts) or any(map(is_without_gradients, forward))
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function))
    return bool(forward) and is_off and returns and not any(a.do in LEARNS for a in acts)


def _finding(held: Loader, call: ast.Call, given: ast.expr) -> Finding:
    module, name = held.module, ast.unparse(given)
    return Finding(
        claim=f"`{ast.unparse(call.func)}` evaluates on `{name}`, and `{held.name}` is never used",
        strength=Strength.STRONG,
        evidence=(
            module.cite(call, "evaluated on the training data"),
            module.cite(held.call, "the held-out data, which nothing reads"),
        ),
        shows="evaluating-on-training-data",
        is_symptom=True,
        location=module.location(call),
        patch=diff(module, replacing(given, held.name)),
    )


def _same_datasets(project: Project) -> Iterator[Finding]:
    for module in project.training_modules:
        for call, _ in module.calls():
            given = {k.arg: k.value for k in call.keywords if k.arg}
            train, held = given.get("train_dataset"), given.get("eval_dataset")
            if train is None or held is None or isinstance(held, ast.Constant):
                continue
            if ast.dump(train) == ast.dump(held):
                text = ast.unparse(held)
                yield Finding(
                    claim=f"The trainer evaluates on its training data, `{text}`",
                    strength=Strength.STRONG,
                    evidence=(module.cite(held, "the same as train_dataset"),),
                    shows="evaluating-on-training-data",
                    is_symptom=True,
                    location=module.location(held),
                )


_PROGRAM = """
import torch
from torch.utils.data import DataLoader

train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=32)

def accuracy(loader):
    model.eval()
    with torch.no_grad():
        hits = [(model(x).argmax(1) == y).float().mean() for x, y in loader]
    return sum(hits) / len(hits)

def centre(loader):
    return torch.cat([x for x, _ in loader]).mean()

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    {call}
"""


def _program(call: str) -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(call=call)})


def _trainer(held: str) -> Run:
    text = f"t = Trainer(model, args, train_dataset=ds['train'], eval_dataset={held})\nt.train()\n"
    return make_run(sources={"train.py": "import torch\nfrom transformers import Trainer\n" + text})


FIRES = {
    "the wrong loader": _program("print(accuracy(train_loader))"),
    "the wrong dataset": _trainer("ds['train']"),
}

SILENT = {
    "the right loader": _program("print(accuracy(test_loader))"),
    "near miss: both": _program("print(accuracy(train_loader), accuracy(test_loader))"),
    "near miss: no score": _program("print(centre(train_loader))"),
    "the right dataset": _trainer("ds['test']"),
}
