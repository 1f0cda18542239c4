"""A checkpoint holds the optimizer's state and resuming leaves it there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loops import training_loops
from traindx.source.module import Module, key_of, literal
from traindx.source.patches import diff, inserting_after


@detector(needs=("source",), suggests=("resume-without-optimizer-state",))
def check(run: Run) -> Iterator[Finding]:
    """Resuming restores the model and the epoch and not the optimizer, though it was saved.

    ## What it detects
    A training script that saves `optimizer.state_dict()`, and on resuming reads the weights and the
    epoch from the checkpoint and never the optimizer's state.

    ## Why it matters
    Momentum and Adam's averages start at zero: the loss jumps where the run resumed, and the first
    steps may undo hours of training.

    ## What to do
    `optimizer.load_state_dict(checkpoint["optimizer"])` beside the model's.

    ## When it is wrong
    Fine-tuning from a checkpoint starts a new optimizer on purpose; it does not read the epoch, and
    is left alone. So are weights that come back after training, to be tested.
    """
    project = project_of(run)
    training = {x.module for x in training_loops(project)}
    for module in project.training_modules:
        saved = _saved_optimizer(module) if module in training else None
        if saved is None:
            continue
        name, key, save = saved
        loads = [c for c, n in module.calls() if n.endswith(".load_state_dict") and c.args]
        if any("optim" in ast.unparse(c).lower() or "opt." in ast.unparse(c.func) for c in loads):
            continue
        resumed = next((c for c in loads if _is_resume(module, c, save)), None)
        if resumed is None or any(name in ast.unparse(c) for c in loads):
            continue
        yield Finding(
            claim=f"Resuming restores the model and the epoch and not `{name}`",
            strength=Strength.STRONG,
            evidence=(
                module.cite(resumed, "the model is restored here, the optimizer nowhere"),
                module.cite(save, f"its state is saved here under {key!r}"),
            ),
            shows="resume-without-optimizer-state",
            is_symptom=True,
            location=module.location(resumed),
            patch=_patch(module, resumed, name, key),
        )


def _saved_optimizer(module: Module) -> tuple[str, str, ast.AST] | None:
    """The optimizer whose state a saved dictionary holds, and under which key."""
    for node in module.nodes(ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            func = value.func if isinstance(value, ast.Call) else None
            if isinstance(func, ast.Attribute) and func.attr == "state_dict":
                name = key_of(func.value) or ""
                if "optim" in name.lower() and isinstance(literal(key), str):
                    return name, str(literal(key)), value
    return None


def _is_resume(module: Module, call: ast.Call, save: ast.AST) -> bool:
    """Tell whether the same function also takes the epoch from the checkpoint, to go on from it.

    Where it was saved above in the same function, the best weights come back for a last test, and
    an epoch that is only printed is nothing to go on from.
    """
    held = call.args[0]
    checkpoint = key_of(held) if isinstance(held, ast.Subscript) else None
    scope: ast.AST = module.function_of(call) or module.tree
    is_after = module.function_of(save) is module.function_of(call) and _line(save) < call.lineno
    if checkpoint is None or is_after:
        return False
    reads = (n for n in ast.walk(scope) if isinstance(n, ast.Subscript))
    epochs = (n for n in reads if isinstance(n.ctx, ast.Load) and literal(n.slice) == "epoch")
    kept = (ast.Assign, ast.AnnAssign, ast.Return)
    return any(key_of(n) == checkpoint and isinstance(module.statement_of(n), kept) for n in epochs)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _patch(module: Module, resumed: ast.Call, name: str, key: str) -> str | None:
    statement = module.statement_of(resumed)
    scope: ast.AST = module.function_of(resumed) or module.tree
    made = [n for n in ast.walk(scope) if isinstance(n, ast.Assign) and n.lineno < resumed.lineno]
    is_made = any(key_of(t) == name for n in made for t in n.targets)
    if statement is None or not is_made:
        return None
    checkpoint = key_of(resumed.args[0])
    text = f'{name}.load_state_dict({checkpoint}["{key}"])'
    return diff(module, inserting_after(module, statement, text))


_PROGRAM = """
import torch

optimizer = torch.optim.Adam(model.parameters())
start_epoch = 0
if args.resume:
    checkpoint = torch.load("last.pt")
    model.load_state_dict(checkpoint["model"])
    {more}
for epoch in range(start_epoch, 10):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    state = {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}}
    torch.save(state, "last.pt")
"""
_EPOCH = 'start_epoch = checkpoint["epoch"] + 1'

_TEST = """
best = torch.load("last.pt")
model.load_state_dict(best["model"])
epoch = best["epoch"]
print(epoch, test(model))
"""


def _program(more: str) -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(more=more)})


FIRES = {"the optimizer is left out": _program(_EPOCH)}

SILENT = {
    "restored": _program(f'optimizer.load_state_dict(checkpoint["optimizer"])\n    {_EPOCH}'),
    "near miss: a new run from old weights": _program("pass"),
    "near miss: the epoch is only told": _program('print("from epoch", checkpoint["epoch"])'),
    "near miss: the best weights come back for the test": make_run(
        sources={"train.py": _program("pass").sources[0].text + _TEST}
    ),
}
