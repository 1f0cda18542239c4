"""A learning-rate schedule is made and never moves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, key_of

MADE_BY = ("torch.optim.lr_scheduler.", "transformers.get_", "transformers.optimization.get_")
# reading it, or keeping its state, does not move it
READS = frozenset(
    {"get_last_lr", "get_lr", "state_dict", "load_state_dict", "last_epoch", "base_lrs",
     "print_lr", "_last_lr"}
)  # fmt: skip


@detector(needs=("source",), suggests=("lr-schedule-misuse",))
def check(run: Run) -> Iterator[Finding]:
    """A learning-rate schedule is made and `step()` is never called on it.

    ## What it detects
    A schedule of `torch.optim.lr_scheduler` or `transformers` that is bound to a name of which
    nothing is used afterwards, or only its state and its last rates.

    ## Why it matters
    The learning rate stays where the schedule began: a warm-up never ends, a decay never comes.

    ## What to do
    Call `scheduler.step()` after `optimizer.step()`, in the loop whose unit its length counts.

    ## When it is wrong
    A schedule that is handed to a trainer, returned, or kept in an object may be stepped there and
    is left alone.
    """
    for module in project_of(run).training_modules:
        for made in module.nodes(ast.Assign):
            name = key_of(made.targets[0]) if len(made.targets) == 1 else None
            kind = _kind(module, made.value)
            if kind and name and name.isidentifier() and _is_idle(module, made, name):
                yield Finding(
                    claim=f"`{name}` ({kind}) is made and never stepped: the learning rate stays "
                    "where the schedule begins",
                    strength=Strength.STRONG,
                    evidence=(module.cite(made, f"no `{name}.step()` follows in this file"),),
                    shows="lr-schedule-misuse",
                    location=module.location(made),
                )


def _kind(module: Module, value: ast.expr) -> str:
    """Return the kind of schedule that a call makes, if it makes one."""
    name = (module.qualified(value.func) or "") if isinstance(value, ast.Call) else ""
    kind = name.rpartition(".")[2]
    is_schedule = name.startswith(MADE_BY[0]) or (
        name.startswith(MADE_BY[1:]) and "schedule" in name
    )
    return kind if is_schedule else ""


def _is_idle(module: Module, made: ast.Assign, name: str) -> bool:
    """Tell whether a name is only read from, in the scope that binds it and all inside of it."""
    scope = module.function_of(made) or module.tree
    for node in ast.walk(scope if name not in _globals(module) else module.tree):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        if isinstance(node.ctx, ast.Load):
            above = module.parents.get(node)
            if not isinstance(above, ast.Attribute) or above.attr not in READS:
                return False
        elif module.parents.get(node) is not made:
            return False  # bound again: another one is stepped, perhaps
    return True


def _globals(module: Module) -> set[str]:
    return {name for n in module.nodes(ast.Global) for name in n.names}


_LOOP = """
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = CosineAnnealingLR(optimizer, T_max=10)
{handed}
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    {after}
"""


def _loop(after: str, handed: str = "") -> Run:
    return make_run(sources={"train.py": _LOOP.format(after=after, handed=handed)})


FIRES = {
    "never used": _loop("pass"),
    "only printed": _loop("print(scheduler.get_last_lr())"),
    "only saved": _loop("torch.save({'s': scheduler.state_dict()}, 'c.pt')"),
}

SILENT = {
    "stepped": _loop("scheduler.step()"),
    "near miss: handed to a trainer": _loop("pass", "trainer.use(optimizer, scheduler)"),
    "near miss: kept in a list": _loop("for s in all: s.step()", "all = [scheduler]"),
    "near miss: prepared": _loop("pass", "scheduler = accelerator.prepare(scheduler)"),
}
