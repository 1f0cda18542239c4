"""A column of predictions meets a flat row of targets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.columns import is_column, is_flat, is_grown, output_of
from traindx.source.loops import training_loops
from traindx.source.losses import LossCall, losses_in, wants
from traindx.source.module import Module, key_of, literal
from traindx.source.patches import diff, replacing
from traindx.source.project import Project
from traindx.source.ranks import Dims, Ranks

DEEP = 4  # assignments followed


@detector(needs=("source",), suggests=("target-shape-broadcast",))
def check(run: Run) -> Iterator[Finding]:
    """Predictions of shape (N, 1) are compared with targets of shape (N).

    ## What it detects
    A squared, absolute or Huber loss whose input is the output of a linear layer with one unit, in
    its own shape, and whose target has one dimension for certain: made from a column of a table or
    by a factory with a single size, and given no second dimension on the way. The same for a loss
    written by hand, `((output - target) ** 2).mean()`, where both shapes are in sight.

    ## Why it matters
    Broadcasting compares every prediction with every target, N × N pairs. The loss is a number,
    gradients flow, and the model learns the mean of the targets.

    ## What to do
    Give both the same shape: `output.squeeze(1)`, or `target.unsqueeze(1)`.

    ## When it is wrong
    Where either shape is out of sight nothing is said, nor where a loss by hand sets a column
    against a row of another length, such as thresholds or quantiles.
    """
    project = project_of(run)
    yield from _by_hand(project)
    for loss in losses_in(project):
        if wants(loss) != "same-shape" or loss.input is None or loss.target is None:
            continue
        output = output_of(project, loss.module, loss.scope, loss.input)
        if output is None or output.units != 1:
            continue
        flat = is_flat(project, loss.module, loss.scope, loss.target)
        flat = flat or _row(project, loss.module, loss.scope, loss.target)
        if flat is None:
            continue
        yield Finding(
            claim=f"{loss.label} compares predictions of shape (N, 1) with targets of shape (N)",
            strength=Strength.STRONG,
            evidence=(
                loss.module.cite(loss.call, "the two meet here and broadcast to (N, N)"),
                output.module.cite(output.layer, "one output unit: (N, 1)"),
                loss.module.cite(flat, "one dimension: (N)"),
            ),
            shows="target-shape-broadcast",
            is_symptom=True,
            location=loss.module.location(loss.call),
            patch=_patch(loss),
        )


def _row(project: Project, module: Module, at: ast.AST, node: ast.expr) -> ast.expr | None:
    """The node itself where it has one dimension, of more than one number, by its making."""
    if _is_open(project, module, at, node):
        return None
    return node if _is_row(Ranks(project, module, at).of(node)) else None


def _is_open(project: Project, module: Module, at: ast.AST, node: ast.expr) -> bool:
    """Tell whether a shape may be another than its making says."""
    return is_grown(project, module, at, node) or _is_entry(project, module, at, node)


def _is_entry(project: Project, module: Module, at: ast.AST, node: ast.expr) -> bool:
    """Tell whether a value is taken by name from what may be a dictionary, of any shape."""
    made, seen = [node], {node}
    for _ in range(DEEP):
        parts = [n for m in made for n in ast.walk(m)]
        named = [n for n in parts if isinstance(n, ast.Subscript) and _is_text(n.slice)]
        if any(not is_column(project, module, at, n) for n in named):
            return True
        names = {n.id for n in parts if isinstance(n, ast.Name)}
        made = [v for n in names for v in project.lookup(module, at, n) if v not in seen]
        seen.update(made)
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(literal(node), str)


def _is_row(shape: Dims | None) -> bool:
    return shape is not None and len(shape) == 1 and shape != (1,)


def _is_column(shape: Dims | None) -> bool:
    return shape is not None and len(shape) == 2 and shape[1] == 1 and shape[0] != 1


def _by_hand(project: Project) -> Iterator[Finding]:
    """The differences in losses that no loss function of torch's computes."""
    seen: set[ast.AST] = set()
    acts = (a for loop in training_loops(project) for a in loop.does(Do.BACKWARD))
    for act in acts:
        scope: ast.AST = act.function or act.module.tree
        for module, at, node in _differences(project, act, scope):
            ranks = Ranks(project, module, at)
            left, right = ranks.of(node.left), ranks.of(node.right)
            is_wrong = (_is_column(left) and _is_row(right)) or (
                _is_row(left) and _is_column(right)
            )
            is_wrong = is_wrong and left is not None and right is not None and left[0] == right[0]
            is_open = any(_is_open(project, module, at, n) for n in (node.left, node.right))
            if not is_wrong or is_open or node in seen:
                continue
            seen.add(node)
            yield Finding(
                claim="The loss takes a difference between shape (N, 1) and shape (N)",
                strength=Strength.STRONG,
                evidence=(
                    module.cite(
                        node,
                        f"`{module.source(node)}` broadcasts {_shown(left)} against "
                        f"{_shown(right)} to N x N pairs",
                    ),
                ),
                shows="target-shape-broadcast",
                is_symptom=True,
                location=module.location(node),
            )


def _shown(shape: Dims | None) -> str:
    return str(tuple("N" if s is None else s for s in shape or ())).replace("'", "")


def _differences(
    project: Project, act: Act, scope: ast.AST
) -> Iterator[tuple[Module, ast.AST, ast.BinOp]]:
    """Yield the subtractions in what `backward` is called on, one function of the user's deep."""
    key = None if act.subject is None else key_of(act.subject)
    values = project.lookup(act.module, scope, key) if key is not None else []
    for value in values:
        yield from ((act.module, scope, n) for n in _subtractions(value))
        own = key_of(value.func) if isinstance(value, ast.Call) else None
        found = None if own is None else project.find_function(act.module, own)
        if found is not None:
            yield from ((found[0], found[1], n) for n in _subtractions(found[1]))


def _subtractions(node: ast.AST) -> Iterator[ast.BinOp]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            yield inner


def _patch(loss: LossCall) -> str | None:
    if loss.input is None:
        return None
    text = loss.module.source(loss.input)
    return diff(loss.module, replacing(loss.input, f"{text}.squeeze(1)"))


_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, {units}))
x = torch.tensor(frame[features].values)
y = {target}
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
criterion = nn.MSELoss()
for data, target in train_loader:
    output = model(data)
    {change}
    loss = criterion(output, target)
    loss.backward()
"""


def _program(target: str, change: str = "pass", units: int = 1) -> Run:
    text = _PROGRAM.format(target=target, change=change, units=units)
    return make_run(sources={"train.py": text})


_COLUMN = 'torch.tensor(frame["price"].values).float()'

_HAND = """
import torch

n = 50
x = torch.randn(n, 3)
y = {target}
w = torch.randn(3, 1, requires_grad=True)
optimizer = torch.optim.Adam([w], lr=0.01)
for step in range(100):
    output = x.mm(w)
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _hand(target: str, loss: str = "((output - y) ** 2).mean()") -> Run:
    return make_run(sources={"train.py": _HAND.format(target=target, loss=loss)})


FIRES = {
    "by hand": _hand("2 * x[:, 0] + torch.randn(n)"),
    "a column of a table": _program(_COLUMN),
    "made flat": _program("torch.randn(100)"),
    "rows of a flat target": _program(_COLUMN, "target = y[:len(output)]"),
}

SILENT = {
    "near miss: by hand, of one shape": _hand("2 * x[:, 0:1]"),
    "near miss: by hand, grown in place": _hand("x[:, 0].clone()\ny.unsqueeze_(1)"),
    "near miss: by hand, flattened": _hand("x[:, 0]", "((output.view(-1) - y) ** 2).mean()"),
    "near miss: pairs on purpose": _hand("x[:, 0]", "(output.t() - output).abs().mean()"),
    "near miss: thresholds for every row": _hand(
        "torch.tensor([0.0, 1.0])", "torch.sigmoid(output - y).mean()"
    ),
    "near miss: one number for all": _hand("torch.tensor([2.0])"),
    "near miss: the target gets a dimension": _program(_COLUMN, "target = target.unsqueeze(1)"),
    "near miss: indexed to a column": _program(_COLUMN, "target = target[:, None]"),
    "near miss: a column before it is loaded": _program(f"{_COLUMN}[:, None]"),
    "near miss: an entry of a dictionary, of any shape": _program(
        _COLUMN, 'target = data["label"].float()'
    ),
    "near miss: an array by its name in a file": _program('torch.tensor(arrays["price"])'),
    "near miss: the target grows in place": _program("torch.randn(100)", "target.unsqueeze_(1)"),
    "near miss: the output loses one": _program(_COLUMN, "output = output.squeeze(1)"),
    "near miss: the shape of the target is out of sight": _program("load_targets()"),
    "a column on purpose": _program("torch.randn(100, 1)"),
}
