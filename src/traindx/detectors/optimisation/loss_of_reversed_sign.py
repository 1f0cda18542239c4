"""Backward is called on the negative of a loss."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do, acts_of
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.losses import WANTS
from traindx.source.module import Module, key_of, literal
from traindx.source.patches import diff, replacing
from traindx.source.project import Project

# people climb a loss on purpose: against an input, another network, or to make a model forget
ON_PURPOSE = re.compile(
    r"maximize\s*=|adversar|attack|ascent|unlearn|forget_(?:set|loss)|gradient.?revers|revers\w*.?grad"
    r"|perturb|poison|domain.?confus|\bgrl\b|min.?max\b|discriminator",
    re.IGNORECASE,
)
DEEP = 8
STEPS = ("training_step", "compute_loss")  # of Lightning and of the Trainer of transformers
AVERAGES = ("mean", "sum")


@detector(needs=("source",), suggests=("wrong-loss-for-task",))
def check(run: Run) -> Iterator[Finding]:
    """The training step maximises a loss of torch: a minus stands before it.

    ## What it detects
    A training loop with one optimizer, which calls backward on `-criterion(…)` or `(-loss)`, where
    the loss is one of torch's own (cross entropy, squared error and their kin) and no other term;
    or a `training_step` or `compute_loss` that returns such a value to its framework.

    ## Why it matters
    The optimizer descends. The negative of such a loss has no lower bound: the model is driven to
    ever worse predictions, until numbers overflow.

    ## What to do
    Take the minus away, or give `maximize=True` if climbing is meant.

    ## When it is wrong
    Attacks, gradient reversal, unlearning and generators that play against a critic climb on
    purpose; programs that speak of them, sums of several terms, and loops with several optimizers
    are left alone.
    """
    project = project_of(run)
    for way in (*_loops(project), *_steps(project)):
        minus = _minus(way)
        if minus is not None:
            yield _finding(way, minus)
            return


@dataclass(frozen=True, eq=False)
class _Way:
    """What is descended from, the scope in which it is computed, and the losses of torch there."""

    module: Module
    scope: ast.AST
    end: ast.AST
    value: ast.expr | None
    losses: frozenset[ast.AST]
    trained: frozenset[str] = frozenset()  # the models whose parameters the optimizer was given


def _loops(project: Project) -> Iterator[_Way]:
    for loop in training_loops(project):
        optimizers = {a.target for a in loop.does(Do.STEP, Do.SCALER_STEP)}
        if len(optimizers) != 1 or ON_PURPOSE.search(loop.module.text):
            continue
        losses = frozenset(a.node for a in loop.does(Do.LOSS) if _label(a) in WANTS)
        for backward in loop.does(Do.BACKWARD):
            scope = backward.function or backward.module.tree
            yield _Way(
                backward.module, scope, backward.node, backward.subject, losses, _trained(loop)
            )


def _trained(loop: TrainingLoop) -> frozenset[str]:
    made = [a.value.call for a in loop.does(Do.STEP) if a.value.call is not None]
    inside = [n for call in made for n in ast.walk(call) if isinstance(n, ast.Attribute)]
    owners = (key_of(n.value) for n in inside if n.attr in ("parameters", "named_parameters"))
    return frozenset(key.split(".")[0] for key in owners if key)


def _steps(project: Project) -> Iterator[_Way]:
    """The steps that a framework calls: it descends from what they return."""
    for module in project.training_modules:
        if ON_PURPOSE.search(module.text):
            continue
        for function in module.functions.values():
            if function.name not in STEPS or module.class_of(function) is None:
                continue
            acts = acts_of(project, module, function)
            losses = frozenset(a.node for a in acts if a.do is Do.LOSS and _label(a) in WANTS)
            returns = [n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value]
            if len(returns) == 1 and not any(a.do is Do.BACKWARD for a in acts):
                value = _returned_loss(returns[0].value)
                yield _Way(module, function, returns[0], value, losses)


def _returned_loss(value: ast.expr | None) -> ast.expr | None:
    """The loss in what a step returns: alone, first of several, or under its name."""
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return next((v for k, v in pairs if k is not None and literal(k) == "loss"), None)
    if isinstance(value, ast.IfExp):  # (loss, outputs) if return_outputs else loss
        value = value.orelse
    return value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value


def _finding(way: _Way, minus: tuple[ast.expr, ast.expr]) -> Finding:
    module, (whole, inner) = way.module, minus
    return Finding(
        claim=f"The step maximises its loss: it descends from `{ast.unparse(whole)}`",
        strength=Strength.STRONG,
        evidence=(
            module.cite(whole, "the loss gets a minus here"),
            module.cite(way.end, "and the optimizer descends from here"),
        ),
        shows="wrong-loss-for-task",
        is_symptom=True,
        location=module.location(module.statement_of(whole) or whole),
        patch=diff(module, replacing(whole, ast.unparse(inner))),
    )


def _minus(way: _Way) -> tuple[ast.expr, ast.expr] | None:
    """The one minus between a loss of torch and its descent; none where the way is not clear."""
    node = way.value
    found: list[tuple[ast.expr, ast.expr]] = []
    for _ in range(DEEP):
        if node in way.losses:
            is_clear = len(found) == 1 and not _is_against_another(way, node)
            return found[0] if is_clear else None
        if node is None:
            return None
        negated = _negated(way.module, node)
        if negated is not None:
            found.append((node, negated))
            node = negated
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
            node = _scaled(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "scale" and node.args:
            node = node.args[0]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in AVERAGES:
            node = node.func.value if isinstance(node.func, ast.Attribute) else None
        else:
            node = _bound(way, node)
    return None


def _is_against_another(way: _Way, loss: ast.AST | None) -> bool:
    """Tell whether a model that is not trained here judges the output of the one that is."""
    given = loss.args[0] if isinstance(loss, ast.Call) and loss.args else None
    judged = _settled(way, given)
    if not isinstance(judged, ast.Call) or not way.trained:
        return False
    judge = key_of(judged.func) or ""
    is_function = judge in way.module.functions or _is_of_torch(way.module, judged.func)
    if not judge or is_function or judge.split(".")[0] in {"self", *way.trained}:
        return False
    made = [_settled(way, a) for a in judged.args]
    calls = [n for m in made if m is not None for n in ast.walk(m) if isinstance(n, ast.Call)]
    return any((key_of(n.func) or "").split(".")[0] in way.trained for n in calls)


def _is_of_torch(module: Module, node: ast.expr) -> bool:
    return (module.qualified(node) or "").startswith("torch.")


def _settled(way: _Way, node: ast.expr | None) -> ast.expr | None:
    """The call behind a name, and behind methods that reshape: `critic(fake).squeeze(1)`."""
    for _ in range(DEEP):
        if isinstance(node, ast.Name):
            node = _bound(way, node)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, (ast.Call, ast.Subscript))
        ):
            node = node.func.value
        else:
            break
    return node


def _negated(module: Module, node: ast.expr) -> ast.expr | None:
    """What an expression is the negative of: `-x`, `-1 * x`, `x * -1`, `0 - x`, `x.neg()`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return node.operand
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        pairs = ((node.left, node.right), (node.right, node.left))
        return next((x for factor, x in pairs if literal(factor) in (-1, -1.0)), None)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return node.right if literal(node.left) in (0, 0.0) else None
    if not isinstance(node, ast.Call):
        return None
    if module.qualified(node.func) in ("torch.neg", "torch.negative") and node.args:
        return node.args[0]
    func = node.func
    is_method = isinstance(func, ast.Attribute) and func.attr in ("neg", "negative")
    return func.value if is_method and isinstance(func, ast.Attribute) and not node.args else None


def _label(loss: Act) -> str:
    return (loss.value.made_by or loss.target).rsplit(".", 1)[-1]


def _scaled(node: ast.BinOp) -> ast.expr | None:
    """What is divided by a number of steps, or multiplied by a positive constant."""
    factor = literal(node.right)
    is_positive = isinstance(factor, (int, float)) and factor > 0
    is_count = isinstance(node.op, ast.Div) and isinstance(node.right, (ast.Name, ast.Attribute))
    return node.left if is_positive or is_count else None


def _bound(way: _Way, node: ast.expr) -> ast.expr | None:
    """The one value that a name has in the scope of the descent."""
    key = key_of(node)
    if key is None or not isinstance(node, ast.Name):
        return None
    changed = (n for n in ast.walk(way.scope) if isinstance(n, ast.AugAssign))
    if any(key_of(n.target) == key for n in changed):
        return None
    last = int(getattr(way.end, "lineno", 0))
    nodes = (n for n in ast.walk(way.scope) if isinstance(n, ast.Assign) and n.lineno <= last)
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


_STEP = """
import lightning as L
import torch.nn.functional as F

class Net(L.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        loss = {loss}
        self.log("train_loss", loss)
        return {back}
"""


def _step(loss: str, back: str = "loss") -> Run:
    return make_run(sources={"net.py": _STEP.format(loss=loss, back=back)})


FIRES = {
    "a step of Lightning": _step("-F.cross_entropy(self(x), y)"),
    "a step that returns a dictionary": _step("F.mse_loss(self(x), y) * -1", "{'loss': loss}"),
    "a minus before the loss": _loop("-criterion(model(data), target)"),
    "a minus, and a wrapped output": _loop("-criterion(torch.squeeze(model(data)), target)"),
    "a minus before backward": _loop("criterion(model(data), target)", "(-loss / 4).backward()"),
}

SILENT = {
    "near miss: a step of Lightning": _step("F.cross_entropy(self(x), y)"),
    "near miss: a policy's loss": _step("-(F.cross_entropy(self(x), y) * reward(x)).mean()"),
    "near miss: a generator against its critic": _loop(
        "-criterion(judge(model(data)).squeeze(1), zeros)"
    ),
    "right": _loop("criterion(model(data), target)"),
    "near miss: climbing is asked for": _loop(
        "-criterion(model(data), target)", option=", maximize=True"
    ),
    "near miss: a log-likelihood": _loop("-dist.log_prob(target).mean()"),
    "near miss: two minuses": _loop("-criterion(model(data), target)", "(-loss).backward()"),
    "near miss: a term among others": _loop("reward(data) - criterion(model(data), target)"),
}
