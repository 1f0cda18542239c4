"""A loss holds an operation that breaks at the edge of its domain."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Result, Value, origins
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.contents import Content, contents
from traindx.analysis.program.training.kinds import Kind, names_of
from traindx.analysis.program.training.layers import is_parameter
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import LOSSES, Operation, operation_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.self_distances import (
    is_self_distance,
    is_square,
    is_sum_of_squares,
)
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

CAUSE = "unstable-operation"
PROBABLE = {Content.PROBABILITIES, Content.UNIT_INTERVAL}
GUARDS = frozenset({"clamp", "clamp_min", "clamp_max", "min", "minimum", "nan_to_num"})
SMALL = 0.01  # what is added below this keeps an argument off zero
Edge = tuple[str, str, bool]  # what it is, what is better, whether the edge is certainly reached


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A loss takes the logarithm of a probability, divides by a norm, or takes a root, unguarded.

    ## What it detects
    In what backward is called on, and in functions and classes named for a loss: the logarithm of a
    softmax or sigmoid, or of what is mixed from one, a division by a norm, the square root of a sum
    of squares, or an arc cosine, with nothing that keeps the argument away from the edge. In any
    forward pass: the root of `1 - x²`. The exponential of a loss, as what is minimised. A root of
    the distances of a tensor to itself is certain: its diagonal is 0.

    ## Why it matters
    Log of 0 is −∞, x/0 is NaN, and the gradient of a root is infinite at 0. One sample at the edge
    turns the loss, then every weight, into NaN.

    ## What to do
    `log_softmax` and `logsigmoid`; `F.normalize`; an epsilon inside the root; a clamp before acos.

    ## When it is wrong
    The edge may never be reached by the data; hence a remark, which counts once the loss is NaN.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        losses = [d.subject for d in story.does(Do.BACKWARD) if d.subject is not None]
        minimised = {id(v) for loss in losses for v in origins(loss)}
        for event in story.events:
            if event.node in seen or event.gradients is Answer.NO or event.is_own:
                continue
            is_loss = id(event.result) in minimised or _is_named_for_loss(event)
            edge = _edge(event, is_loss)
            if edge is None and any(event.result is loss for loss in losses):
                edge = _exponential(story, event.result)
            if edge is not None:
                seen.add(event.node)
                yield _finding(event, edge, id(event.result) in minimised)


def _is_named_for_loss(event: ProgramEvent) -> bool:
    function = event.function
    cls = None if function is None else event.module.class_of(function)
    names = (str(getattr(function, "name", "")), "" if cls is None else cls.name)
    return any("loss" in name.lower() for name in names)


def _edge(event: ProgramEvent, is_loss: bool) -> Edge | None:
    operation = operation_of(event.result)
    if operation is None or not operation.operands:
        return None
    given = operation.operands[0]
    if operation.name == "sqrt" and _is_half_circle(operation_of(given)):
        return "the root of 1 - x²", "its gradient is infinite at ±1; clamp inside", False
    if not is_loss:
        return None
    if operation.name == "log":
        return _logarithm(given)
    if operation.name == "sqrt":
        return _root(given)
    if operation.name == "div" and _is_norm(operation):
        return "a division by a norm", "F.normalize guards it", False
    if operation.name in ("acos", "arccos") and _is_open(operation_of(given)):
        return "an arc cosine", "its gradient is infinite at ±1; clamp before", False
    return None


def _root(given: Value) -> Edge | None:
    says = "its gradient is infinite at 0"
    if is_self_distance(given):
        return "the root of distances of a tensor to itself", f"{says}: the diagonal", True
    if is_sum_of_squares(operation_of(given)):
        return "the root of a sum of squares", says, False
    return None


def _logarithm(given: Value) -> Edge | None:
    found = {content for content, _ in contents(given)}
    if found and found <= PROBABLE:
        name = next(iter(found)).value
        return f"the logarithm of a {name}", f"log_{name} (F.logsigmoid) is exact", False
    if _is_mixed(given):
        return "the logarithm of a probability", "−∞ once the model is sure and wrong", False
    return None


def _is_mixed(value: Value, depth: int = 5) -> bool:
    """Tell whether a value is made of probabilities by nothing but products, sums and 1 - p.

    A small number that is added is a guard, and so is any other operation.
    """
    found = {content for content, _ in contents(value)}
    if found and found <= PROBABLE:
        return True
    operation = operation_of(value)
    if operation is None or operation.name not in ("add", "sub", "mul") or depth == 0:
        return False
    if operation.name == "add" and any(_is_small(v) for v in operation.operands):
        return False
    return any(_is_mixed(v, depth - 1) for v in operation.operands)


def _is_small(value: Value) -> bool:
    """An epsilon, by its value or by its name."""
    number = number_of(value)
    words = ("eps", "smooth", "tiny")
    is_named = any(w in name.lower() for name in names_of(value) for w in words)
    return is_named or (number is not None and number < SMALL)


def _is_half_circle(operation: Operation | None) -> bool:
    """`1 - x ** 2`: the sine of an angle from its cosine."""
    if operation is None or operation.name != "sub" or len(operation.operands) != 2:
        return False
    return number_of(operation.operands[0]) == 1 and is_square(operation_of(operation.operands[1]))


def _is_norm(operation: Operation) -> bool:
    below = operation_of(operation.operands[1]) if len(operation.operands) > 1 else None
    if below is None or below.name not in ("norm", "vector_norm") or not below.operands:
        return False
    return not any(is_parameter(v) for v in origins(below.operands[0], 50))


def _is_open(operation: Operation | None) -> bool:
    """Arithmetic may keep an argument inside its domain; it is given the benefit of the doubt."""
    arithmetic = ("add", "sub", "mul", "div", "pow", "neg")
    return operation is None or operation.name not in (*GUARDS, *arithmetic)


def _exponential(story: Story, loss: Value | None) -> Edge | None:
    """The exponential of a loss function's value, where it is what backward is called on."""
    operation = operation_of(loss)
    if operation is None or operation.name != "exp" or not operation.operands:
        return None
    inside = [(v, operation_of(v)) for v in origins(operation.operands[0], 100)]
    is_guarded = any(o is not None and o.name in GUARDS for _, o in inside)
    is_loss = any(
        (o is not None and o.name in LOSSES)
        or (isinstance(v, Result) and story.kind_of(v.receiver).kind is Kind.LOSS)
        for v, o in inside
    )
    if is_guarded or not is_loss:
        return None
    return "the exponential of a loss", "one sample that is far off makes it infinite", False


def _finding(event: ProgramEvent, edge: Edge, is_minimised: bool) -> Finding:
    what, better, is_certain = edge
    claim = f"The loss holds an operation that can give NaN: {what}"
    if is_certain and is_minimised:
        says = cite(event, f"{what}; {better}")
        return finding(claim, CAUSE, event, says, is_symptom=True)
    return Finding(
        claim=claim,
        strength=Strength.MODERATE,
        evidence=(event.cite(f"{what}; {better}"),),
        suggests={CAUSE: Strength.MODERATE},
        location=event.location,
    )


_LOSS = """
import torch
import torch.nn.functional as F

def {name}(output, target):
    p = F.softmax(output, dim=1)
    return -({expression}).mean()
"""


def _loss(expression: str, name: str = "my_loss") -> Run:
    return make_run(sources={"loss.py": _LOSS.format(expression=expression, name=name)})


_MARGIN = """
import torch
from torch import nn
import torch.nn.functional as F

class Margin(nn.Module):
    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        return {expression}
"""
_MINIMISED = """
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()
for data, target in train_loader:
    optimizer.zero_grad()
    loss = {expression}
    loss.backward()
    optimizer.step()
"""


def _margin(expression: str) -> Run:
    return make_run(sources={"margin.py": _MARGIN.format(expression=expression)})


def _minimised(expression: str) -> Run:
    return make_run(sources={"train.py": _MINIMISED.format(expression=expression)})


def _distances(root: str) -> Run:
    text = _MINIMISED.replace(
        "    loss =", "    e = model(data)\n    sq = e.pow(2).sum(1)\n    loss ="
    )
    return make_run(sources={"train.py": text.format(expression=root)})


_PAIRS = "(sq[:, None] + sq[None, :] - 2 * e @ e.t())"

FIRES = {
    "the root of distances to itself, multiplied out": _distances(
        f"{_PAIRS}.clamp(min=0).sqrt().mean()"
    ),
    "the root of distances to itself": _distances(
        "torch.sqrt(((e.unsqueeze(0) - e.unsqueeze(1)) ** 2).sum(-1)).mean()"
    ),
    "log of a mixed probability": _loss("torch.log(p * target + (1 - p) * (1 - target))"),
    "the sine of an angle": _margin("torch.sqrt(1.0 - torch.pow(cosine, 2))"),
    "the exponential of a loss": _minimised("torch.exp(criterion(model(data), target) / 2)"),
    "log of a softmax": _loss("target * torch.log(p)"),
    "log of a sigmoid": _loss("target * torch.sigmoid(output).log()"),
    "a division by a norm": _loss("output / output.norm(dim=1, keepdim=True)"),
    "a root": _loss("torch.sqrt(((output - target) ** 2).sum(1))"),
}

SILENT = {
    "near miss: distances that are kept off zero": _distances(
        f"{_PAIRS}.clamp(min=1e-12).sqrt().mean()"
    ),
    "near miss: distances with an epsilon": _distances(f"({_PAIRS} + 1e-9).sqrt().mean()"),
    "near miss: torch's own distances": _distances("torch.cdist(e, e).mean()"),
    "near miss: distances to others": _distances(
        "(sq[:, None] + other - 2 * e @ others.t()).sqrt().mean()"
    ),
    "near miss: a mixed probability and an epsilon": _loss(
        "torch.log(p * target + (1 - p) * (1 - target) + 1e-7)"
    ),
    "near miss: a clamped sine": _margin("torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(1e-6, 1))"),
    "near miss: the perplexity is only shown": _minimised(
        "criterion(model(data), target); shown = torch.exp(loss)"
    ),
    "log-softmax": _loss("target * F.log_softmax(output, dim=1)"),
    "near miss: with an epsilon": _loss("target * torch.log(p + 1e-8)"),
    "near miss: clamped": _loss("torch.acos((output * target).clamp(-0.999, 0.999))"),
    "near miss: no loss": _loss("target * torch.log(p)", "entropy_metric"),
}
