"""A script that can resume saves the weights only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loops import training_loops
from traindx.source.module import Module

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
    Optimizer state may be saved elsewhere, or not matter with plain SGD; hence only a remark.
    """
    project = project_of(run)
    training = {x.module for x in training_loops(project)}
    for module in project.training_modules:
        if module not in training or not any(word in module.text for word in RESUMES):
            continue
        saves = [c for c, n in module.calls() if n == "torch.save" and c.args]
        loads = any(n == "torch.load" for _, n in module.calls())
        if not saves or not loads or not all(_is_weights(module, c.args[0]) for c in saves):
            continue
        yield Finding(
            claim="The script resumes, and its checkpoints hold the weights only",
            strength=Strength.MODERATE,
            evidence=(module.cite(saves[0], "only the weights are saved"),),
            suggests={"incomplete-checkpoint": Strength.MODERATE},
            location=module.location(saves[0]),
        )


def _is_weights(module: Module, node: ast.expr) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    is_state = isinstance(func, ast.Attribute) and func.attr == "state_dict"
    return is_state and "optim" not in ast.unparse(node).lower()


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
    "near miss: nothing resumes": make_run(
        sources={
            "train.py": "import torch\nfor x, y in loader:\n    loss = criterion(model(x), y)\n"
            "    loss.backward()\n    optimizer.step()\n"
            "torch.save(model.state_dict(), 'final.pt')\n"
        }
    ),
}
