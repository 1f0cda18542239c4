"""A distributed sampler repeats the same order in every epoch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import phase_of
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.patches import diff, inserting_before
from traindx.source.project import Project

HANDED = re.compile(r"sampler|loader|_dl\b", re.IGNORECASE)
TELL_NOTHING = frozenset({"print", "len", "info", "enumerate"})
SAMPLER = "DistributedSampler"
DRIVEN = frozenset({"accelerate", "lightning", "pytorch_lightning", "lightning_fabric", "ignite"})


@detector(needs=("source",), suggests=("sampler-epoch-not-set",))
def check(run: Run) -> Iterator[Finding]:
    """A DistributedSampler is used over epochs and is never told which epoch it is.

    ## What it detects
    A `DistributedSampler` that shuffles, in a file with a training loop over epochs, where neither
    that file nor one that it imports calls `set_epoch`.

    ## Why it matters
    The sampler seeds its shuffle with the epoch. Without it every epoch has the same order and
    every rank sees the same share of the data for ever.

    ## What to do
    `sampler.set_epoch(epoch)` at the top of every epoch.

    ## When it is wrong
    Frameworks call it themselves; files that use one are left alone. So is a sampler that is made
    anew with a seed for every epoch, or that is handed on with the epoch to code out of sight.
    """
    project = project_of(run)
    for module in project.training_modules:
        if module.roots & DRIVEN or any("set_epoch" in m.text for m in _reached(project, module)):
            continue
        made = _shuffling_sampler(project, module)
        loop = next((x for x in training_loops(project) if _is_epochs(x, module)), None)
        if made is None or loop is None or not isinstance(loop.node, ast.For):
            continue
        if _is_told_otherwise(project, module, loop.node):
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


def _reached(project: Project, module: Module) -> set[Module]:
    """Return a file with those that it imports, and those that they import."""
    found: set[Module] = set()
    waiting = [module]
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            parts = {part for name in here.aliases.values() for part in name.split(".")}
            waiting += [m for name, m in project.by_name.items() if name in parts]
    return found


def _shuffling_sampler(project: Project, module: Module) -> ast.AST | None:
    for call, name in module.calls():
        is_torch = name.rsplit(".", 1)[-1] == SAMPLER and project.find_class(module, name) is None
        if not is_torch or literal(argument(call, "shuffle", 3)) is False:
            continue
        if not _is_held_out(module, call) and not _is_seeded_anew(module, call):
            return call
    return _chosen_sampler(module)


def _is_held_out(module: Module, call: ast.Call) -> bool:
    """Tell whether a sampler is for validation, by its name, its data's or its function's."""
    statement, function = module.statement_of(call), module.function_of(call)
    names = [key_of(t) or "" for t in getattr(statement, "targets", [])]
    names += [] if function is None else [function.name]
    names += [key_of(a) or "" for a in call.args[:1]]
    return any(phase_of(name) in ("val", "test") for name in names)


def _is_seeded_anew(module: Module, call: ast.Call) -> bool:
    """`DistributedSampler(data, seed=epoch)`, made in every epoch."""
    seed = argument(call, "seed", 4)
    if seed is None or literal(seed) is not None:
        return False
    in_loop = any(isinstance(n, (ast.For, ast.While)) for n in module.enclosing(call))
    return in_loop or "epoch" in ast.unparse(seed).lower()


def _is_told_otherwise(project: Project, module: Module, loop: ast.For) -> bool:
    """`sampler.epoch = epoch`, or the sampler or loader goes with the epoch out of sight."""
    written = [t for n in module.nodes(ast.Assign) for t in n.targets]
    written += [n.target for n in module.nodes(ast.AugAssign)]
    if any(_is_state_of_sampler(t) for t in written):
        return True
    counted = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    seen = {name for m in _reached(project, module) for name in m.functions}
    known = {name.rsplit(".", 1)[-1] for name in seen} | TELL_NOTHING
    for call, name in module.calls(loop):
        given = {key_of(a) or "" for a in (*call.args, *(k.value for k in call.keywords))}
        is_unseen = name.rsplit(".", 1)[-1] not in known
        if is_unseen and given & counted and HANDED.search(" ".join(given)):
            return True
    return False


def _is_state_of_sampler(target: ast.expr) -> bool:
    is_state = isinstance(target, ast.Attribute) and target.attr in ("epoch", "seed")
    return is_state and "sampler" in ast.unparse(target).lower()


def _chosen_sampler(module: Module) -> ast.AST | None:
    """The class where it is chosen by a condition: `RandomSampler if … else DistributedSampler`."""
    for node in module.nodes(ast.IfExp):
        names = [module.qualified(n) or "" for n in (node.body, node.orelse)]
        above = module.parents.get(node)
        held = key_of(above.targets[0]) if isinstance(above, ast.Assign) else ""
        if any(n.rsplit(".", 1)[-1] == SAMPLER for n in names) and held:
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
    "made anew in one order": _program("sampler = DistributedSampler(data)"),
    "chosen by a condition": make_run(sources={"train.py": _CHOSEN.format(top="model.train()")}),
}

_ELSEWHERE = {
    "train.py": "from engine import before_epoch\n"
    + _PROGRAM.format(top="before_epoch(train_loader, epoch)", options=""),
    "engine.py": "def before_epoch(loader, epoch):\n    loader.sampler.set_epoch(epoch)\n",
}
_ANEW = """sampler = DistributedSampler(data, seed=epoch)
    train_loader = DataLoader(data, batch_size=32, sampler=sampler)"""

SILENT = {
    "near miss: set in another file": make_run(sources=_ELSEWHERE),
    "near miss: made anew for every epoch": make_run(
        sources={
            "train.py": _PROGRAM.replace("sampler = DistributedSampler(data{options})", "").format(
                top=_ANEW
            )
        }
    ),
    "near miss: set by its attribute": _program("sampler.epoch = epoch"),
    "near miss: handed on with the epoch": _program("hooks.start(train_loader, epoch)"),
    "set": _program("sampler.set_epoch(epoch)"),
    "near miss: no shuffling": _program(options=", shuffle=False"),
    "near miss: set through the loader": _program("train_loader.sampler.set_epoch(epoch)"),
}
