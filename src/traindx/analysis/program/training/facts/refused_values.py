"""Values that an operation refuses whatever they hold: a tuple for a tensor, labels for scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Items, Result, Value, constant
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.facts.certainty import is_certain
from traindx.analysis.program.training.facts.roles import SCHEDULERS, TENSOR, Misuse
from traindx.analysis.program.training.gradients import has_history
from traindx.analysis.program.training.layers import is_layer, layer_kind
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

OF_SEVERAL = frozenset({"LSTM", "GRU", "RNN", "MultiheadAttention"})
WITH_PLACES = frozenset({"max", "min", "sort", "topk", "median", "kthvalue", "mode"})
# operations that take one tensor, whatever else they take
OF_ONE = frozenset(
    {"relu", "tanh", "sigmoid", "softmax", "log_softmax", "gelu", "add", "sub", "mul", "div",
     "flatten", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "mean", "sum",
     "size", "matmul", "dropout", "backward", "detach", "item"}
)  # fmt: skip
PASSING = frozenset(
    {"Identity", "Sequential", "ModuleList", "ModuleDict", "DataParallel",
     "DistributedDataParallel"}
)  # fmt: skip
PAIRS = frozenset({"add", "sub", "mul", "div", "matmul"})


def refused_values(story: Story) -> Iterator[Misuse]:
    """Yield the operations that are given what they cannot work on."""
    for event in story.events:
        if event.act is not EventForm.CALL or event.is_own:
            continue
        for ask in (_of_tuple, _without_metric, _of_labels, _of_graph):
            misuse = ask(story, event)
            if misuse is not None and is_certain(event):
                yield misuse
                break
    yield from _of_many(story)


def _of_tuple(story: Story, event: ProgramEvent) -> Misuse | None:
    """What is done to a tuple of tensors as if it were a tensor."""
    operation = operation_of(event.result)
    if operation is None or not operation.operands:
        return None
    if event.name == "()":
        is_of_one = is_layer(event.receiver) and layer_kind(event.receiver) not in PASSING
    elif operation.name == "getitem":
        key = operation.operands[1] if len(operation.operands) > 1 else None
        is_of_one = isinstance(key, Items) and key.kind == "tuple"
    else:
        is_of_one = operation.name in OF_ONE
    given = operation.operands[: 2 if operation.name in PAIRS else 1] if is_of_one else ()
    found = next((v for v in given if is_tuple(v)), None)
    return None if found is None else Misuse(event, found, TENSOR, "a tuple")


def is_tuple(value: Value) -> bool:
    """Tell whether a value is certainly several tensors: the output of `nn.LSTM`, `x.max(1)`."""
    operation = operation_of(value)
    if not isinstance(value, Result) or operation is None:
        return False
    if value.maker == "()":
        return layer_kind(value.receiver) in OF_SEVERAL
    is_torch = value.receiver is None and value.maker.startswith("torch.")
    if operation.name not in WITH_PLACES or not is_torch:
        return False
    dim = value.kwargs.get("dim", value.args[1] if len(value.args) > 1 else None)
    return isinstance(constant(dim), int) or operation.name in ("sort", "topk")


def _without_metric(story: Story, event: ProgramEvent) -> Misuse | None:
    """The step of a schedule that waits for a plateau and is not told any metric."""
    scheduler = event.receiver
    is_step = event.name == ".step" and not event.args and not event.kwargs
    if not is_step or not isinstance(scheduler, Result):
        return None
    waits = scheduler.maker == f"{SCHEDULERS}ReduceLROnPlateau"
    return Misuse(event, scheduler, "the metric to watch", "none") if waits else None


def _of_labels(story: Story, event: ProgramEvent) -> Misuse | None:
    """Labels where the scores belong, and scores where the labels belong."""
    operation = operation_of(event.result)
    is_of_classes = operation is not None and operation.name in ("cross_entropy", "nll_loss")
    if operation is None or not is_of_classes or len(operation.operands) < 2:
        return None
    first, second = operation.operands[:2]
    labels = story.dtypes.of(first)
    is_swapped = labels is not None and labels.dtype == "int64" and labels.holder == "tensor"
    if not is_swapped or has_history(second) is not Answer.YES:
        return None
    return Misuse(event, first, "scores before labels", "labels first")


def _of_graph(story: Story, event: ProgramEvent) -> Misuse | None:
    """`.numpy()` of a tensor that gradients flow through."""
    tensor = event.receiver
    if event.name != ".numpy" or tensor is None or event.kwargs or event.args:
        return None
    if has_history(tensor) is not Answer.YES or story.dtypes.of(tensor) is None:
        return None
    return Misuse(event, tensor, "a tensor without a graph (`.detach()`)", "one that needs grad")


def _of_many(story: Story) -> Iterator[Misuse]:
    """Backward of a tensor that is not one number, without a gradient to begin with."""
    for deed in story.does(Do.BACKWARD):
        event, loss = deed.event, deed.subject
        if event.name != ".backward" or deed.through is not None or loss is None:
            continue
        if event.args or {"gradient", "grad_tensors"} & event.kwargs.keys():
            continue
        shape = story.shapes.shape(loss)
        if shape is None or shape.is_open or not is_certain(event):
            continue
        if any(isinstance(size, int) and size > 1 for size in shape.sizes):
            yield Misuse(event, loss, "one number", f"a tensor of shape {shape}")
