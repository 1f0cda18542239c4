"""Backward is called on the negative of a loss."""

import re

from traindx.analysis.program.execution.values import (
    Answer,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import (
    cite,
    finding,
    replace,
    source_text,
    use_of,
)
from traindx.analysis.program.training.gradients import runs_reached
from traindx.analysis.program.training.kinds import Kind, names_of
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.ownership import holders, owns, parameters_given
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

# who climbs a loss to make a model forget says so: no act of the program shows it
ON_PURPOSE = re.compile(
    r"adversar|attack|ascent|unlearn|forget|revers|perturb|poison|domain_confus|grl"
)


@detector(needs=("source",), suggests=("wrong-loss-for-task",))
def check(run: Run) -> Findings:
    """The training step maximises a loss of torch: a minus stands before it.

    ## What it detects
    A step with one optimizer that descends from the negative of one of torch's own losses (cross
    entropy, squared error and their kin) and no other term, by its own `backward` or by what it
    returns to its framework.

    ## Why it matters
    The optimizer descends. The negative of such a loss has no lower bound: the model is driven to
    ever worse predictions, until numbers overflow.

    ## What to do
    Take the minus away, or give `maximize=True` if climbing is meant.

    ## When it is wrong
    Attacks, gradient reversal, unlearning and generators that play against a critic climb on
    purpose; values and functions named for that, sums of several terms, optimizers that maximise,
    gradients of an input, models judged by others and steps of several optimizers are left alone.
    """
    for story in program_of(run).stories:
        steps = [d for d in story.does(Do.STEP) if not d.event.by_framework]
        optimizers = {id(d.subject): d.subject for d in steps or story.does(Do.STEP)[:1]}
        if len(optimizers) != 1:
            continue
        optimizer = next(iter(optimizers.values()))
        if isinstance(optimizer, Result) and "maximize" in optimizer.kwargs:
            continue
        for backward in story.does(Do.BACKWARD):
            minus = None if backward.subject is None else _minus(backward.subject)
            if minus is not None and not _is_on_purpose(story, backward, optimizer):
                yield _finding(backward, *minus)
                return


def _finding(backward: Deed, whole: Result, inner: Value) -> Finding:
    written = source_text(whole)
    return finding(
        f"The step maximises its loss: it descends from `{written}`",
        "wrong-loss-for-task",
        whole,
        cite(whole, "the loss is negated here"),
        cite(backward, "and the optimizer descends from it here"),
        is_symptom=True,
        patch=_patch(whole, inner),
    )


def _patch(whole: Result, inner: Value) -> str | None:
    """Put the loss in the place of its negative, by its expression or by its name."""
    text = "" if inner.site is None else source_text(inner)
    if not text or text not in source_text(whole):
        use = use_of(whole, inner)
        text = "" if use is None else source_text(use)
    return replace(whole, text) if text else None


def _minus(value: Value) -> tuple[Result, Value] | None:
    """The one minus between a loss of torch and its descent; none where the way is not clear."""
    found: list[tuple[Result, Value]] = []
    for _ in range(12):
        operation = operation_of(value)
        if operation is None or not isinstance(value, Result):
            return None
        if operation.name in LOSSES:
            return found[0] if len(found) == 1 and found[0][0].site is not None else None
        negated = _negated(operation.name, operation.operands)
        if negated is not None:
            found.append((value, negated))
        below = negated or _scaled(operation.name, operation.operands)
        if below is None:
            return None
        value = below
    return None


def _negated(name: str, operands: tuple[Value, ...]) -> Value | None:
    """What a value is the negative of: `-x`, `-1 * x`, `0 - x`, `x.neg()`."""
    if name == "neg" and operands:
        return operands[0]
    if len(operands) != 2:
        return None
    first, second = operands
    if name == "sub" and constant(first) in (0, 0.0) and isinstance(first, Known):
        return second
    if name in ("mul", "div") and constant(second) in (-1, -1.0):
        return first
    return second if name == "mul" and constant(first) in (-1, -1.0) else None


def _scaled(name: str, operands: tuple[Value, ...]) -> Value | None:
    """What is averaged, scaled by a scaler, divided by a count or times a positive constant."""
    if name in ("mean", "sum") and operands:
        return operands[0]
    if name == "scale" and len(operands) == 2:
        return operands[1]
    if name not in ("mul", "div") or len(operands) != 2:
        return None
    for value, factor in (operands, operands[::-1] if name == "mul" else operands):
        number = constant(factor)
        if isinstance(number, (int, float)) and number > 0:
            return value
    is_count = name == "div" and isinstance(operands[1], (Unknown, Part))
    return operands[0] if is_count else None


def _is_on_purpose(story: Story, backward: Deed, optimizer: Value | None) -> bool:
    """Tell whether the climb is meant, or the gradient goes to something else than the weights."""
    loss = backward.subject
    if loss is None or _speaks_of_it(story, backward, loss):
        return True
    given = None if optimizer is None else parameters_given(optimizer)
    trained = [model for model, _ in holders(given)]
    if isinstance(optimizer, Result) and not trained:
        return True  # of an input, or of what is out of sight
    layers = [r.receiver for r in runs_reached(loss) if r.receiver is not None]
    if optimizer is not None and any(owns(optimizer, x) is Answer.NO for x in layers):
        return True
    return any(_judges(story, v, trained) for v in origins(loss, 400))


def _judges(story: Story, value: Value, trained: list[Value]) -> bool:
    """Tell whether a value is what another model makes of the output of a trained one."""
    if not isinstance(value, Result) or not isinstance(value.receiver, Unknown):
        return False
    if any(value.receiver is t for t in trained) or story.kind_of(value.receiver).kind is Kind.LOSS:
        return False
    below = [v for a in value.args for v in origins(a, 200) if isinstance(v, Result)]
    return any(v.receiver is t for v in below for t in trained)


def _speaks_of_it(story: Story, backward: Deed, loss: Value) -> bool:
    function = backward.event.function
    words = [str(getattr(function, "name", ""))]
    words += [name for value in origins(loss, 400) for name in names_of(value)]
    words += [event.name for event in story.events if event.is_own]
    return any(ON_PURPOSE.search(word.lower()) for word in words)


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
