"""Validation changes the model's input in a way that training does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.arguments import handed_over
from traindx.source.feeding import Changes, changes_of, methods_of
from traindx.source.loaders import phase_of
from traindx.source.module import Module, key_of
from traindx.source.phases import LEARNS, Entry, entries, is_same_model, is_without_gradients
from traindx.source.project import Project

ON_PURPOSE = ("robust", "noise", "noisy", "corrupt", "attack", "advers", "tta", "perturb", "stress")
HELD_OUT_STEPS = ("validation_step", "test_step")


@dataclass(frozen=True, eq=False)
class _Pair:
    """A model that is run in training and in validation, and the calls."""

    module: Module
    name: str
    training: tuple[ast.Call, ...]
    held_out: ast.Call
    beside: tuple[ast.Call, ...] = ()  # of the same model, on the same held-out batches


@detector(needs=("source",), suggests=("preprocessing-mismatch", "augmentation-in-validation"))
def check(run: Run) -> Iterator[Finding]:
    """A model's input is scaled, shifted or made noisy in validation and not so in training.

    ## What it detects
    Two calls of one model in a file, one where it learns and one in a loop over held-out data, or
    in `training_step` and `validation_step`, whose inputs go through different arithmetic with
    fixed numbers, or through noise in validation only.

    ## Why it matters
    The model is shown inputs that it never learnt from. The metric is low, and no regularisation
    will help.

    ## What to do
    Put the preprocessing in one function and call it in both places; keep noise for training.

    ## When it is wrong
    Tests of robustness disturb inputs on purpose; functions that are named so are left alone. So
    are inputs that pass through functions of their own, numbers that are computed, and a second
    view of a batch that the model is also given as in training.
    """
    project = project_of(run)
    for pair in (*_steps(project), *(p for e in entries(project) for p in _loops(project, e))):
        yield from _compare(pair)


def _steps(project: Project) -> Iterator[_Pair]:
    for module in project.training_modules:
        for cls in module.classes.values():
            methods = methods_of(cls)
            held = next((methods[n] for n in HELD_OUT_STEPS if n in methods), None)
            if "training_step" not in methods or held is None:
                continue
            learns = list(_own_calls(methods["training_step"]))
            for name, call in _own_calls(held):
                same = tuple(c for n, c in learns if n == name)
                beside = tuple(c for n, c in _own_calls(held) if n == name and c is not call)
                if same:
                    yield _Pair(module, name, same, call, beside)


def _own_calls(method: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """The calls of the module itself or of a part that is a model by its name."""
    for node in ast.walk(method):
        name = key_of(node.func) if isinstance(node, ast.Call) else None
        if name in ("self", "self.forward", "self.model", "self.net", "self.network"):
            assert isinstance(node, ast.Call)
            yield name, node


def _loops(project: Project, entry: Entry) -> Iterator[_Pair]:
    runs = [a for a in entry.acts if a.do is Do.FORWARD and a.loops and not a.guards]
    learning = [a for a in runs if _learns(entry, a) and not is_without_gradients(a)]
    for act in runs:
        if _learns(entry, act) or not _is_held_out(project, act):
            continue
        same = [a for a in learning if is_same_model(a, act) and a.module is act.module]
        calls = tuple(a.node for a in same if isinstance(a.node, ast.Call))
        others = (a for a in runs if a.loops == act.loops and a.module is act.module)
        again = (a.node for a in others if a is not act and is_same_model(a, act))
        if calls and isinstance(act.node, ast.Call):
            beside = tuple(n for n in again if isinstance(n, ast.Call))
            yield _Pair(act.module, act.target, calls, act.node, beside)


def _learns(entry: Entry, act: Act) -> bool:
    inside = (a for a in entry.acts if act.loops[-1] in a.loops)
    return any(a.do in LEARNS for a in inside)


def _is_held_out(project: Project, act: Act) -> bool:
    loop = act.loops[-1]
    over = [key_of(n) or "" for n in ast.walk(loop.iter)] if isinstance(loop, ast.For) else []
    names = [*over, act.function.name if act.function is not None else ""]
    phases = {phase_of(n) for n in names} - {""}
    if not phases and act.function is not None:  # by what its callers hand over
        handed = (handed_over(project, act.module, act.function, name) for name in over if name)
        names = [key_of(node) or "" for given in handed for _, _, node in given]
        phases = {phase_of(name) or "unknown" for name in names}
    return bool(phases) and not phases & {"train", "unknown"}


def _compare(pair: _Pair) -> Iterator[Finding]:
    module = pair.module
    function = module.function_of(pair.held_out)
    name = function.name.lower() if function is not None else ""
    trained = [changes_of(module, c) for c in pair.training]
    held = changes_of(module, pair.held_out)
    if any(word in name for word in ON_PURPOSE) or not all(c.is_known for c in (*trained, held)):
        return
    again = (c for c in pair.beside if _sources(module, c) & _sources(module, pair.held_out))
    if any(_is_as(changes_of(module, c), trained) for c in again):
        return
    if held.noise and not any(c.noise for c in trained):
        says = f"`{held.noise[0]}` on the input in validation, not in training"
        yield _finding(pair, "Validation adds noise", says, "augmentation-in-validation")
    elif all(c.fixed != held.fixed for c in trained):
        says = f"validation: {_words(held)}; training: {_words(trained[0])}"
        claim = "Validation scales or shifts the input in another way than training"
        yield _finding(pair, claim, says, "preprocessing-mismatch")


def _sources(module: Module, call: ast.Call) -> set[str]:
    """The names that a model's input is made from, one assignment back."""
    given = {n.id for a in call.args[:1] for n in ast.walk(a) if isinstance(n, ast.Name)}
    scope: ast.AST = module.function_of(call) or module.tree
    assigned = (n for n in ast.walk(scope) if isinstance(n, ast.Assign))
    made = [n.value for n in assigned if any(key_of(t) in given for t in n.targets)]
    names = {n.id for v in made for n in ast.walk(v) if isinstance(n, ast.Name)}
    return (given | names) - set(module.aliases)


def _is_as(changes: Changes, trained: list[Changes]) -> bool:
    """Tell whether an input is as in training: what stands beside it is a second view of it."""
    alike = (
        c for c in trained if c.fixed == changes.fixed and bool(c.noise) >= bool(changes.noise)
    )
    return not changes.is_known or any(alike)


def _words(changes: Changes) -> str:
    return f"the input {' '.join(changes.fixed)}" if changes.fixed else "the input as it comes"


def _finding(pair: _Pair, claim: str, says: str, cause: str) -> Finding:
    module, call = pair.module, pair.held_out
    return Finding(
        claim=f"{claim}: {says}",
        strength=Strength.STRONG,
        evidence=(
            module.cite(call, says),
            module.cite(pair.training[0], "the same model in training"),
        ),
        shows=cause,
        is_symptom=True,
        location=module.location(module.statement_of(call) or call),
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for data, target in train_loader:
        {before}
        optimizer.zero_grad()
        nn.functional.cross_entropy(model({train}), target).backward()
        optimizer.step()
    with torch.no_grad():
        for data, target in val_loader:
            data, target = data.to(device), target.to(device)
            correct = model({val}).argmax(1) == target
"""
_STEPS = """
import torch, lightning

class Net(lightning.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self(x{train}), y)

    def validation_step(self, batch, index):
        x, y = batch
        x = x{val}
        self.log("val", nn.functional.cross_entropy(self(x), y))
"""


def _program(val: str, train: str = "data", before: str = "pass") -> Run:
    text = _PROGRAM.format(train=train, val=val, before=before)
    return make_run(sources={"train.py": text})


def _lightning(val: str, train: str = "") -> Run:
    return make_run(sources={"train.py": _STEPS.format(train=train, val=val)})


_CALLED = """
import torch
from torch import nn

@torch.no_grad()
def match(net, loader):
    for x, y in loader:
        hits = net({val}).argmax(1) == y

def main():
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    match(model, {given})
"""


def _called(given: str) -> Run:
    text = _CALLED.replace("{val}", "x + 4 * torch.randn_like(x)").replace("{given}", given)
    return make_run(sources={"train.py": text})


FIRES = {
    "noise in a function that is handed held-out data": _called("val_loader"),
    "noise on one of two inputs": _program("data + torch.randn_like(data)) + model(other"),
    "shifted": _program("data - 0.5"),
    "scaled in training only": _program("data", before="data = data / 255.0"),
    "noise": _program("data + 0.1 * torch.randn_like(data)"),
    "steps of Lightning": _lightning(" * 2"),
}

SILENT = {
    "near miss: a function that is handed anything": _called("batches"),
    "the same": _program("data"),
    "near miss: the same, written otherwise": _program(
        "data.float().div(255)", before="data = data / 255.0"
    ),
    "near miss: noise in training only": _program("data", "data + torch.randn_like(data)"),
    "near miss: a second view of the same batch": _program("data) + model(data * -1.0"),
    "near miss: how much noise does to the output": _lightning(
        "\n        shaken = x + torch.randn_like(x)\n        z = self(shaken)"
    ),
    "near miss: noise in both": _lightning(" + torch.randn_like(x)", " + torch.rand_like(x)"),
    "near miss: a mixture of two": _program("data", "lam * data + (1 - lam) * data[index]"),
    "near miss: for one batch only": _program("data", before="if epoch == 2: data = data * 1000.0"),
    "near miss: a function of its own": _program("data / 255", "prepare(data)"),
}
