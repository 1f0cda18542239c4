"""A distributed sampler repeats the same order in every epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import phase_of
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.patches import diff, inserting_before

DRIVEN = frozenset({"accelerate", "lightning", "pytorch_lightning", "lightning_fabric", "ignite"})


@detector(needs=("source",), suggests=("sampler-epoch-not-set",))
def check(run: Run) -> Iterator[Finding]:
    """A DistributedSampler is used over epochs and is never told which epoch it is.

    ## What it detects
    A `DistributedSampler` that shuffles, in a file with a training loop over epochs, in which
    nothing calls `set_epoch`.

    ## Why it matters
    The sampler seeds its shuffle with the epoch. Without it every epoch has the same order and
    every rank sees the same share of the data for ever.

    ## What to do
    `sampler.set_epoch(epoch)` at the top of every epoch.

    ## When it is wrong
    Frameworks call it themselves; files that use one are left alone.
    """
    project = project_of(run)
    for module in project.training_modules:
        if "set_epoch" in module.text or module.roots & DRIVEN:
            continue
        made = _shuffling_sampler(module)
        loop = next((x for x in training_loops(project) if _is_epochs(x, module)), None)
        if made is None or loop is None or not isinstance(loop.node, ast.For):
            continue
        yield Finding(
            claim="The distributed sampler is never told the epoch: the order never changes",
            strength=Strength.STRONG,
            evidence=(
                module.cite(made, "a sampler that shuffles by epoch"),
                module.cite(loop.node, "epochs run here without set_epoch"),
            ),
            shows="sampler-epoch-not-set",
            is_symptom=True,
            location=module.location(loop.node),
            patch=_patch(module, made, loop.node),
        )


def _shuffling_sampler(module: Module) -> ast.AST | None:
    for call, name in module.calls():
        if not name.endswith("DistributedSampler") or literal(argument(call, "shuffle")) is False:
            continue
        above = module.parents.get(call)
        held = key_of(above.targets[0]) if isinstance(above, ast.Assign) else ""
        if phase_of(held or "") not in ("val", "test"):
            return call
    return _chosen_sampler(module)


def _chosen_sampler(module: Module) -> ast.AST | None:
    """The class where it is chosen by a condition: `RandomSampler if … else DistributedSampler`."""
    for node in module.nodes(ast.IfExp):
        names = [module.qualified(n) or "" for n in (node.body, node.orelse)]
        above = module.parents.get(node)
        held = key_of(above.targets[0]) if isinstance(above, ast.Assign) else ""
        if any(n.endswith("DistributedSampler") for n in names) and held:
            return None if phase_of(held) in ("val", "test") else node
    return None


def _is_epochs(loop: TrainingLoop, module: Module) -> bool:
    node = loop.node
    is_counted = isinstance(node, ast.For) and "epoch" in ast.unparse(node.target).lower()
    return loop.module is module and is_counted


def _patch(module: Module, made: ast.AST, loop: ast.For) -> str | None:
    above = module.parents.get(made)
    is_made = isinstance(above, ast.Assign) and isinstance(made, ast.Call)
    name = key_of(above.targets[0]) if is_made and isinstance(above, ast.Assign) else None
    same = module.function_of(made) is module.function_of(loop)
    if name is None or not same or not isinstance(loop.target, ast.Name):
        return None
    text = f"{name}.set_epoch({loop.target.id})"
    return diff(module, inserting_before(module, loop.body[0], text))


_PROGRAM = """
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

sampler = DistributedSampler(data{options})
train_loader = DataLoader(data, batch_size=32, sampler=sampler)
for epoch in range(3):
    {top}
    for x, y in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


def _program(top: str = "model.train()", options: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(top=top, options=options)})


_CHOSEN = _PROGRAM.replace(
    "DistributedSampler(data{options})",
    "(RandomSampler if rank < 0 else DistributedSampler)",
).replace("sampler=sampler", "sampler=sampler(data)")

FIRES = {
    "never set": _program(),
    "chosen by a condition": make_run(sources={"train.py": _CHOSEN.format(top="model.train()")}),
}

SILENT = {
    "set": _program("sampler.set_epoch(epoch)"),
    "near miss: no shuffling": _program(options=", shuffle=False"),
    "near miss: set through the loader": _program("train_loader.sampler.set_epoch(epoch)"),
}
