"""A script that can resume saves the weights only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loops import training_loops
from traindx.source.module import Module
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

SAVES_ALL = re.compile(r"\.save_(?:state|checkpoint)\(|opt\w*\.state_dict\(|optim\w*_state_dict\(")
RESUMES = ("start_epoch", "args.resume", "resume_from", "initial_epoch")


@detector(needs=("source",), suggests=("incomplete-checkpoint",))
def check(run: Run) -> Iterator[Finding]:
    """A training script that resumes from a checkpoint saves nothing but the model's weights.

    ## What it detects
    A file with a training loop, words of resuming (`start_epoch`, `--resume`) and `torch.load`, in
    which every `torch.save` writes `model.state_dict()` alone.

    ## Why it matters
    A resumed run starts with an empty optimizer, a fresh schedule and epoch 0: the loss jumps, and
    the learning rate warms up again.

    ## What to do
    Save a dictionary: model, optimizer, scheduler, scaler, epoch, random states.

    ## When it is wrong
    Optimizer state may be saved elsewhere, or not matter with plain SGD; hence only a remark. Where
    it goes to a file of its own, or a framework saves it, nothing is said.
    """
    project = project_of(run)
    training = {x.module for x in training_loops(project)}
    for module in project.training_modules:
        if module not in training or not any(word in module.text for word in RESUMES):
            continue
        saves = [c for c, n in module.calls() if n == "torch.save" and c.args]
        loads = any(n == "torch.load" for _, n in module.calls())
        if not saves or not loads or SAVES_ALL.search(module.text):
            continue
        if not all(_is_weights(project, module, c.args[0]) for c in saves):
            continue
        yield Finding(
            claim="The script resumes, and its checkpoints hold the weights only",
            strength=Strength.MODERATE,
            evidence=(module.cite(saves[0], "only the weights are saved"),),
            suggests={"incomplete-checkpoint": Strength.MODERATE},
            location=module.location(saves[0]),
        )


def _is_weights(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether a saved value is the state of a model; a part may be one, an optimizer not."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != "state_dict":
        return False
    owner = func.value
    if isinstance(owner, ast.Call) and owner.args:  # unwrap(model), getattr(model, "module", model)
        owner = owner.args[0]
    at: ast.AST = module.function_of(node) or module.tree
    is_model = value_of(project, module, at, owner).kind is Kind.MODEL
    return is_model and "optim" not in ast.unparse(node).lower()


_PROGRAM = """
import torch

if args.resume:
    model.load_state_dict(torch.load("last.pt"))
for epoch in range(start_epoch, 10):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    torch.save({saved}, "last.pt")
"""


def _program(saved: str) -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(saved=saved)})


FIRES = {"weights only": _program("model.state_dict()")}

SILENT = {
    "all of it": _program('{"model": model.state_dict(), "optimizer": optimizer.state_dict()}'),
    "near miss: the optimizer goes to its own file": _program(
        'model.state_dict(), "last.pt")\n    torch.save(opt.state_dict()'
    ),
    "near miss: a framework saves all of it": _program(
        'model.state_dict(), "last.pt")\n    accelerator.save_state("all"'
    ),
    "near miss: something that may hold all of it": _program("agent.state_dict()"),
    "near miss: nothing resumes": make_run(
        sources={
            "train.py": "import torch\nfor x, y in loader:\n    loss = criterion(model(x), y)\n"
            "    loss.backward()\n    optimizer.step()\n"
            "torch.save(model.state_dict(), 'final.pt')\n"
        }
    ),
}
