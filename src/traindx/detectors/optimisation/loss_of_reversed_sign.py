"""Backward is called on the negative of a loss."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.losses import WANTS
from traindx.source.module import Module, key_of, literal
from traindx.source.patches import diff, replacing

# people climb a loss on purpose: against an input, another network, or to make a model forget
ON_PURPOSE = re.compile(
    r"maximize\s*=|adversar|attack|ascent|unlearn|forget_(?:set|loss)|gradient.?revers|revers\w*.?grad"
    r"|perturb|poison|domain.?confus|\bgrl\b",
    re.IGNORECASE,
)
DEEP = 6


@detector(needs=("source",), suggests=("wrong-loss-for-task",))
def check(run: Run) -> Iterator[Finding]:
    """The training step maximises a loss of torch: a minus stands before it.

    ## What it detects
    A training loop with one optimizer, which calls backward on `-criterion(…)` or `(-loss)`, where
    the loss is one of torch's own (cross entropy, squared error and their kin) and no other term.

    ## Why it matters
    The optimizer descends. The negative of such a loss has no lower bound: the model is driven to
    ever worse predictions, until numbers overflow.

    ## What to do
    Take the minus away, or give `maximize=True` if climbing is meant.

    ## When it is wrong
    Attacks, gradient reversal and unlearning climb on purpose; programs that speak of them, sums of
    several terms, and loops with several optimizers are left alone.
    """
    for loop in training_loops(project_of(run)):
        optimizers = {a.target for a in loop.does(Do.STEP, Do.SCALER_STEP)}
        if len(optimizers) != 1 or ON_PURPOSE.search(loop.module.text):
            continue
        for backward in loop.does(Do.BACKWARD):
            minus = _minus(loop, backward)
            if minus is not None:
                yield _finding(backward, minus)
                return


def _finding(backward: Act, minus: ast.UnaryOp) -> Finding:
    module = backward.module
    return Finding(
        claim=f"The step maximises its loss: backward is called on `{ast.unparse(minus)}`",
        strength=Strength.STRONG,
        evidence=(
            module.cite(minus, "the loss gets a minus here"),
            module.cite(backward.node, "and the optimizer descends from here"),
        ),
        shows="wrong-loss-for-task",
        is_symptom=True,
        location=module.location(module.statement_of(minus) or minus),
        patch=diff(module, replacing(minus, ast.unparse(minus.operand))),
    )


def _minus(loop: TrainingLoop, backward: Act) -> ast.UnaryOp | None:
    """The one minus between a loss of torch and backward; none where the way is not clear."""
    module, node = backward.module, backward.subject
    found: list[ast.UnaryOp] = []
    losses = {a.node for a in loop.does(Do.LOSS) if _label(a) in WANTS}
    for _ in range(DEEP):
        if node in losses:
            return found[0] if len(found) == 1 else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            found.append(node)
            node = node.operand
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
            node = _scaled(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "scale" and node.args:
            node = node.args[0]
        else:
            node = _bound(module, backward, node) if node is not None else None
        if node is None:
            return None
    return None


def _label(loss: Act) -> str:
    return (loss.value.made_by or loss.target).rsplit(".", 1)[-1]


def _scaled(node: ast.BinOp) -> ast.expr | None:
    """What is divided by a number of steps, or multiplied by a positive constant."""
    factor = literal(node.right)
    is_positive = isinstance(factor, (int, float)) and factor > 0
    is_count = isinstance(node.op, ast.Div) and isinstance(node.right, (ast.Name, ast.Attribute))
    return node.left if is_positive or is_count else None


def _bound(module: Module, backward: Act, node: ast.expr) -> ast.expr | None:
    """The one value that a name has in the function of backward."""
    key = key_of(node)
    scope = backward.function or module.tree
    if key is None or not isinstance(node, ast.Name):
        return None
    changed = (n for n in ast.walk(scope) if isinstance(n, ast.AugAssign))
    if any(key_of(n.target) == key for n in changed):
        return None
    nodes = (n for n in ast.walk(scope) if isinstance(n, ast.Assign) and n.lineno <= backward.line)
    made = [n.value for n in nodes if any(key_of(t) == key for t in n.targets)]
    return made[0] if len(made) == 1 else None


_LOOP = """
import torch
from torch import nn

criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1{option})
for data, target in loader:
    optimizer.zero_grad()
    loss = {loss}
    {backward}
    optimizer.step()
"""


def _loop(loss: str, backward: str = "loss.backward()", option: str = "") -> Run:
    text = _LOOP.format(loss=loss, backward=backward, option=option)
    return make_run(sources={"train.py": text})


FIRES = {
    "a minus before the loss": _loop("-criterion(model(data), target)"),
    "a minus before backward": _loop("criterion(model(data), target)", "(-loss / 4).backward()"),
}

SILENT = {
    "right": _loop("criterion(model(data), target)"),
    "near miss: climbing is asked for": _loop(
        "-criterion(model(data), target)", option=", maximize=True"
    ),
    "near miss: a log-likelihood": _loop("-dist.log_prob(target).mean()"),
    "near miss: two minuses": _loop("-criterion(model(data), target)", "(-loss).backward()"),
    "near miss: a term among others": _loop("reward(data) - criterion(model(data), target)"),
}
