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
from traindx.source.project import Project

TOLD = ("print", "len", "type", "isinstance")  # calls that take nothing from what they are given


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
    is left alone. So are weights that come back after training, to be tested, and a checkpoint that
    is handed on, or read by keys that are not written there: more may be restored from it.
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
        resumed = next((c for c in loads if _is_resume(project, module, c)), None)
        if resumed is None or any(name in ast.unparse(c) for c in loads):
            continue
        if _may_be_read_otherwise(module, resumed, key):
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


def _may_be_read_otherwise(module: Module, resumed: ast.Call, key: str) -> bool:
    """Tell whether the checkpoint is used in any way but to take other entries by their keys."""
    checkpoint = key_of(resumed.args[0])
    scope = module.function_of(resumed) or module.tree
    held = (n for n in ast.walk(scope) if isinstance(n, (ast.Name, ast.Attribute)))
    uses = (n for n in held if key_of(n) == checkpoint and isinstance(n.ctx, ast.Load))
    return any(not _leaves_out(module, n, key) for n in uses)


def _leaves_out(module: Module, use: ast.expr, key: str) -> bool:
    """Tell whether a use of the checkpoint cannot reach the optimizer's entry."""
    above = module.parents.get(use)
    if isinstance(above, ast.Subscript) and above.value is use:
        read = literal(above.slice)
    elif isinstance(above, ast.Attribute):
        call = module.parents.get(above)
        is_read = isinstance(call, ast.Call) and above.attr in ("get", "pop") and bool(call.args)
        read = literal(call.args[0]) if is_read and isinstance(call, ast.Call) else None
        if above.attr == "keys":
            return True
    else:
        return isinstance(above, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.IfExp)) or (
            isinstance(above, ast.Call) and key_of(above.func) in TOLD
        )
    return isinstance(read, str) and read != key and "optim" not in read.lower()


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


def _is_resume(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether the same function also takes the epoch from the checkpoint, to go on from it.

    Best weights that come back for a last test have an epoch too, which is told or kept; training
    goes on only from one at which a loop begins.
    """
    held = call.args[0]
    checkpoint = key_of(held) if isinstance(held, ast.Subscript) else None
    function = module.function_of(call)
    reads = (n for n in ast.walk(function or module.tree) if isinstance(n, ast.Subscript))
    epochs = (n for n in reads if isinstance(n.ctx, ast.Load) and literal(n.slice) == "epoch")
    own = [n for n in epochs if checkpoint is not None and key_of(n) == checkpoint]
    if {name for n in own for name in _targets(module.statement_of(n))} & _starts(module):
        return True
    if not own or function is None:
        return False
    return any(_targets_of(m, function.name) & _starts(m) for m in project.modules)


def _targets(statement: ast.stmt | None) -> set[str]:
    """Return the names that a statement binds, `self.epoch` and those of a tuple too."""
    given = statement.targets if isinstance(statement, ast.Assign) else []
    parts = [p for t in given for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return {key for part in parts if (key := key_of(part)) is not None}


def _targets_of(module: Module, function: str) -> set[str]:
    """Return the names that keep what calls of a function return."""
    return {
        name
        for node in module.nodes(ast.Assign)
        if isinstance(node.value, ast.Call)
        and (key_of(node.value.func) or "").rsplit(".", 1)[-1] == function
        for name in _targets(node)
    }


def _starts(module: Module) -> set[str]:
    """Return the names at which loops begin: `range(start, epochs)`, `while epoch < epochs`."""
    begun: list[ast.AST] = [
        call.args[0]
        for call, name in module.calls()
        if call.args and (name.endswith("count") or (name == "range" and len(call.args) > 1))
    ]
    begun += [node.test for node in module.nodes(ast.While)]
    return {key for b in begun for n in ast.walk(b) if (key := _key(n)) is not None}


def _key(node: ast.AST) -> str | None:
    return key_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else None


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


_FUNCTION = """
def {name}(path, model):
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    epoch = checkpoint["epoch"]
    return model, epoch

{start}
"""


def _by_function(name: str, start: str) -> Run:
    text = _FUNCTION.format(name=name, start=start) + _program("pass").sources[0].text
    return make_run(sources={"train.py": text})


FIRES = {
    "the optimizer is left out": _program(_EPOCH),
    "by a function": _by_function("resume", 'model, start_epoch = resume("last.pt", model)'),
}

SILENT = {
    "restored": _program(f'optimizer.load_state_dict(checkpoint["optimizer"])\n    {_EPOCH}'),
    "near miss: all by a loop over names": _program(
        f"for n, x in parts.items():\n        x.load_state_dict(checkpoint[n])\n    {_EPOCH}"
    ),
    "near miss: handed on": _program(f"restore(optimizer, checkpoint)\n    {_EPOCH}"),
    "near miss: handed on by its entry": _program(
        f'restore(steps, checkpoint["optimizer"])\n    {_EPOCH}'
    ),
    "near miss: a new run from old weights": _program("pass"),
    "near miss: a function that brings the best weights back": _by_function(
        "best", 'model, at = best("best.pt", model)\nprint(at)'
    ),
    "near miss: the epoch is only told": _program('print("from epoch", checkpoint["epoch"])'),
    "near miss: the best weights come back for the test": make_run(
        sources={"train.py": _program("pass").sources[0].text + _TEST}
    ),
}
