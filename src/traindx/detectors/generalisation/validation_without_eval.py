"""Validation runs with dropout on and batch statistics."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Evidence, Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loaders import resolve
from traindx.source.models import changes_with_mode, layers_of
from traindx.source.module import Module, key_of
from traindx.source.patches import diff, inserting_after, inserting_before
from traindx.source.phases import (
    LEARNS,
    Evaluation,
    evaluations,
    is_same_model,
    mode_before,
)
from traindx.source.project import Project
from traindx.source.values import value_of

LEVELS = 4  # names that are followed from a loop or container to the models in it
SETS_MODE = re.compile(r"(?:^|_)(?:eval|evaluating|mode|modes)(?:_|$)|eval_?mode", re.IGNORECASE)
COPIES = re.compile(r"deepcopy|clone|AveragedModel|\bEMA|state_dict")
OF_GRADIENTS = ("inference_mode", "set_grad_mode")


@detector(needs=("source",), suggests=("validation-in-train-mode",))
def check(run: Run) -> Iterator[Finding]:
    """A validation loop runs a model with dropout or batch norm that is in training mode.

    ## What it detects
    A loop over validation or test data, or a block without gradients that speaks of nothing but
    such data, which runs a model made in sight with dropout or batch norm in it, while nothing
    called `eval()` on that model before, or `train()` was called last.

    ## Why it matters
    Dropout makes the metric noisy and too low. Batch norm normalises by the validation batch and,
    worse, moves its running statistics with validation data.

    ## What to do
    Call `model.eval()` before the loop and `model.train()` before training goes on.

    ## When it is wrong
    Dropout that stays on to sample predictions is meant so. A loop that sets `train()` itself is
    left alone, and so is one after an `eval()` of what may hold the model: a container, a context.
    """
    project = project_of(run)
    for evaluation in evaluations(project):
        forward = evaluation.forward
        made = forward.value.call
        if made is None or not forward.value.is_certain or _decides_itself(evaluation):
            continue
        layers = changes_with_mode(layers_of(project, forward.module, made))
        mode = mode_before(evaluation.entry, forward)
        if not layers or _may_be_in_eval(project, evaluation, mode):
            continue
        over = "loop" if isinstance(evaluation.block, ast.For) else "pass"
        yield Finding(
            claim=f"The {evaluation.phase} {over} runs {forward.target} in training mode: "
            f"{', '.join(layers)} {'behaves' if len(layers) == 1 else 'behave'} as in training",
            strength=Strength.STRONG,
            evidence=_evidence(evaluation, mode),
            shows="validation-in-train-mode",
            is_symptom=True,
            location=evaluation.module.location(evaluation.forward.statement or evaluation.block),
            patch=_patch(evaluation),
        )


def _evidence(evaluation: Evaluation, mode: Act | None) -> tuple[Evidence, ...]:
    forward = evaluation.forward
    here = forward.module.cite(forward.node, f"{forward.target} runs here without eval()")
    if mode is None:
        return (here,)
    return here, mode.module.cite(mode.node, "its mode was last set here, to training")


def _decides_itself(evaluation: Evaluation) -> bool:
    """Tell whether the block, or a function that only evaluates, sets a mode in some other way."""
    function = evaluation.module.function_of(evaluation.block)
    inside = (a for a in evaluation.entry.acts if a.function is function)
    also_trains = function is evaluation.entry.scope or any(a.do in LEARNS for a in inside)
    scope = evaluation.block if function is None or also_trains else function
    for node in ast.walk(scope):
        if isinstance(node, ast.Attribute) and node.attr in ("train", "eval"):
            return True
    return False


def _may_be_in_eval(project: Project, evaluation: Evaluation, mode: Act | None) -> bool:
    """Tell whether the model is in evaluation mode, by itself or with what holds it since."""
    if mode is not None and mode.do is Do.EVAL_MODE:
        return True
    if _is_set_out_of_sight(project, evaluation):
        return True
    acts, forward = evaluation.entry.acts, evaluation.forward
    first = 0 if mode is None else acts.index(mode) + 1
    since = acts[first : acts.index(forward)]
    return any(a.do is Do.EVAL_MODE and _may_hold(project, a, forward) for a in since)


def _may_hold(project: Project, act: Act, forward: Act) -> bool:
    """Tell whether what an act is done to holds a model: by its parts, or out of sight."""
    if act.target and forward.target.startswith(f"{act.target}."):
        return True
    if act.target in (f"{forward.target}.module", f"{forward.target}._orig_mod"):
        return True
    if act.subject is None:
        return False
    several = _looped_over(act)
    if any(not _is_listed(project, act, x) for x in several):
        return True  # some models, which ones is out of sight
    return _reaches(project, act, [act.subject, *several], forward.value.call)


def _looped_over(act: Act) -> list[ast.expr]:
    """What the loops go over that give a name to what an act is done to."""
    names = {key_of(n) for n in ast.walk(act.subject)} if act.subject is not None else set()
    found = []
    for above in act.module.enclosing(act.node):
        loops = [above] if isinstance(above, ast.For) else getattr(above, "generators", [])
        found += [x.iter for x in loops if names & {key_of(n) for n in ast.walk(x.target)} - {None}]
    return found


def _is_listed(project: Project, act: Act, node: ast.expr) -> bool:
    """Tell whether every member of what a loop goes over is written down."""
    made = resolve(project, act.module, act.node, node)
    given = made.args[0] if isinstance(made, ast.Call) and len(made.args) == 1 else made
    is_written = isinstance(given, (ast.Tuple, ast.List, ast.Set))
    return is_written and not any(isinstance(n, ast.Starred) for n in ast.walk(given or node))


def _reaches(project: Project, act: Act, pending: list[ast.expr], made: ast.Call | None) -> bool:
    """Tell whether a model is among what some expressions are made from."""
    at = act.function or act.module.tree
    seen: set[str] = set()
    for _ in range(LEVELS):
        names = [n for node in pending for n in _names(act.module, node)]
        if any(value_of(project, act.module, at, n).call is made for n in names):
            return True
        fresh = {k for n in names if (k := key_of(n))} - seen
        seen |= fresh
        bound = [v for key in fresh for v in project.lookup(act.module, act.node, key)]
        pending = [v for v in bound if not COPIES.search(ast.unparse(v))]
    return False


def _names(module: Module, node: ast.expr) -> list[ast.expr]:
    """The names that an expression takes its value from, without those of what it calls."""
    called = {n.func for n in ast.walk(node) if isinstance(n, ast.Call)}
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name) and n not in called)
    own = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and key_of(n.value) == "self")
    plain = (n for n in names if n.id != "self" and n.id not in module.aliases)
    return [*plain, *own]


def _is_set_out_of_sight(project: Project, evaluation: Evaluation) -> bool:
    """Tell whether a context, a decorator or a foreign function speaks of the mode."""
    module, block = evaluation.module, evaluation.block
    function = module.function_of(block)
    names = list(evaluation.forward.contexts)
    for decorator in function.decorator_list if function is not None else ():
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        names.append(module.qualified(called) or "")
    for call, name in module.calls(function or module.tree):
        if call.lineno < block.lineno and not project.find_function(module, name):
            given = {key_of(n) for a in call.args for n in ast.walk(a)}
            names += [name] if evaluation.forward.target in given else []
    lasts = (n.rsplit(".", 1)[-1] for n in names)
    return any(SETS_MODE.search(n) for n in lasts if n not in OF_GRADIENTS)


def _patch(evaluation: Evaluation) -> str | None:
    module, block, name = evaluation.module, evaluation.block, evaluation.forward.target
    edits = [inserting_before(module, block, f"{name}.eval()")]
    acts = evaluation.entry.acts
    returns = (a for a in acts if a.do is Do.TRAIN_MODE and a.loops)
    if not any(is_same_model(a, evaluation.forward) for a in returns):
        edits.append(inserting_after(module, block, f"{name}.train()"))
    return diff(module, *edits)


_PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.drop = nn.{layer}

    def forward(self, x):
        return self.drop(self.fc(x))

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    {validation}
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
"""


_AT_ONCE = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(F.dropout(x, 0.5{training}))

def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(200):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x)[train_nodes], labels[train_nodes]).backward()
        optimizer.step()
        {mode}
        with torch.no_grad():
            {scores}

main()
"""


def _at_once(
    mode: str = "pass",
    scores: str = "loss_val = F.cross_entropy(model(x)[val_nodes], labels[val_nodes])",
    training: str = ", training=self.training",
) -> Run:
    return make_run(
        sources={"train.py": _AT_ONCE.format(mode=mode, scores=scores, training=training)}
    )


def _program(validation: str = "pass", layer: str = "Dropout(0.5)") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(validation=validation, layer=layer)})


_OWN_CONTEXT = """
from contextlib import contextmanager

@contextmanager
def evaluating(net):
    net.eval()
    yield
    net.train()
"""


def _context() -> Run:
    text = _PROGRAM.format(validation="pass", layer="Dropout(0.5)")
    text = text.replace("with torch.no_grad():", "with torch.no_grad(), evaluating(model):")
    return make_run(sources={"train.py": _OWN_CONTEXT + text})


FIRES = {
    "dropout stays on": _program(),
    "only another model is put into evaluation mode": _program(
        "teacher = load(settings); teacher.eval()"
    ),
    "only a copy of it is": _program("ema = copy.deepcopy(model); ema.eval()"),
    "only others of a loop are": _program("for m in (nn.Linear(2, 2), teacher()): m.eval()"),
    "batch norm stays on": _program(layer="BatchNorm1d(2)"),
    "all validation data at once": _at_once(),
}

SILENT = {
    "eval before the loop": _program("model.eval()"),
    "near miss: train(False)": _program("model.train(False)"),
    "near miss: train(mode=False)": _program("model.train(mode=False)"),
    "near miss: a loop over several models": _program("for m in (model, head): m.eval()"),
    "near miss: such a loop in one line": _program("[m.eval() for m in everything]"),
    "near miss: a container": _program("nn.ModuleList([model, head]).eval()"),
    "near miss: a container under a name": _program(
        "parts = nn.ModuleDict({'net': model})\n    parts.eval()"
    ),
    "near miss: a function out of sight": _program("set_mode([model], 'eval')"),
    "near miss: a context of its own": _context(),
    "eval before all data at once": _at_once("model.eval()"),
    "near miss: targets without gradients": _at_once(scores="soft = model(train_x)"),
    "near miss: a pass of nobody knows what": _at_once(scores="z = model(x)"),
    "near miss: dropout that samples predictions": _at_once(
        scores="test_draws = torch.stack([model(x_test) for _ in range(50)])"
    ),
    "near miss: dropout that no mode switches off": _at_once(training=""),
    "near miss: a layer that has no modes": _program(layer="LayerNorm(2)"),
}
