"""Losses that do not fit what a model puts out or what its labels are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.values import Part, Result, Value, constant
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.gradients import runs_behind
from traindx.analysis.program.training.graphs import feeds_backward
from traindx.analysis.program.training.loaders import dataset_of
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Computed, Program
from traindx.analysis.program.training.shapes import made_by_layer, shape_of
from traindx.analysis.program.training.tasks import Task, is_multi_hot, task_of

CLASSIFICATION = frozenset(
    {"MNIST", "FashionMNIST", "KMNIST", "QMNIST", "CIFAR10", "CIFAR100", "ImageFolder", "SVHN",
     "STL10", "ImageNet", "Food101", "DatasetFolder"}
)  # fmt: skip
TABLES = ("pandas", "sklearn.datasets", "torch.utils.data.TensorDataset")  # one row per sample
BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits", "nll_loss")
DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@dataclass(frozen=True, slots=True, eq=False)
class LossMisfit:
    """A loss that does not fit its task: why, and the value that shows it."""

    loss: Computed
    why: str
    value: Value
    shows: str


def misfit_losses(program: Program) -> Iterator[LossMisfit]:
    """Yield the losses that do not fit their outputs or targets; each place once."""
    seen: set[object] = set()
    for loss in program.results("cross_entropy", *BINARY, *DISTANCES):
        found = None if loss.event.node in seen else _misfit(loss) or _wrong_output(program, loss)
        if found is not None:
            seen.add(loss.event.node)
            yield LossMisfit(loss, *found)


def _misfit(loss: Computed) -> tuple[str, Value, str] | None:
    """Compare what the target is with what the loss takes it for."""
    given, target = loss.operation.argument("input"), loss.operation.argument("target")
    if given is None or target is None or not runs_behind(given):
        return None
    if loss.operation.name == "cross_entropy" and is_multi_hot(loss.story, target):
        return f"{loss.label} on multi-label targets", target, "several ones in a row"
    task = task_of(loss.story, target)
    if task is None or task[0] is (Task.AMOUNT if loss.operation.name in DISTANCES else Task.CLASS):
        return None
    kind, shown = task
    return f"{loss.label} of a target that is {kind.value}", shown, f"shows {kind.value}"


def _wrong_output(program: Program, loss: Computed) -> tuple[str, Value, str] | None:
    """Compare the outputs of the last layer with what the loss takes them for."""
    name, given = loss.operation.name, loss.operation.argument("input")
    target, layer = loss.operation.argument("target"), made_by_layer(given)
    if name in BINARY or given is None or layer is None or operation_of(given) is None:
        return None
    units = _units(layer)
    if name in DISTANCES:
        why = f"{loss.label} between {units} outputs and class labels"
        is_wrong = isinstance(units, int) and units > 1 and _is_class(target)
        return (why, layer, f"{units} output units") if is_wrong else None
    if units == 1 and _is_one_row(program, given, target):
        return f"{loss.label} over a single output is always 0", layer, "one output unit"
    sigmoid = _sigmoid_of(program, layer)
    why = f"trained with {loss.label} (softmax), and predicted with a sigmoid for each label"
    return None if sigmoid is None else (why, sigmoid, "a sigmoid of the same output")


def _units(layer: Result) -> object:
    made = operation_of(Result("()", layer))
    return None if made is None else constant(made.settings.get("out_features"))


def _is_one_row(program: Program, given: Value, target: Value | None) -> bool:
    """Tell whether a model gives one score per sample, and not one for each of its candidates.

    Linear layers take rows of any number: (B, K, features) becomes (B, K, 1), K candidates.
    """
    shape = shape_of(given)
    cast = operation_of(target)
    if shape is not None:
        return len(shape) == 2
    imported = [n for m in program.project.modules for n in m.aliases.values()]
    is_table = any(n == t or n.startswith(f"{t}.") for n in imported for t in TABLES)
    return is_table or (cast is not None and cast.name == "float")


def _sigmoid_of(program: Program, layer: Result) -> Value | None:
    """A sigmoid that a layer's output is given to, by itself: a threshold for each label."""
    for found in program.results("sigmoid"):
        given, made = found.operation.operands[:1], found.event.result
        if given and made_by_layer(given[0]) is layer and made is not None:
            return None if feeds_backward(found.story, made) else made
    return None


def _is_class(target: Value | None) -> bool:
    """Tell whether a target is the label that a classification dataset gives, as it is."""
    plain = next(iter(same_numbers(target)), None) if target is not None else None
    if not isinstance(plain, Part) or plain.key != 1 or not isinstance(plain.of, Result):
        return False
    batch = plain.of
    loader = batch.args[0] if batch.maker == "builtins.next" and batch.args else None
    data = None if loader is None else dataset_of(loader)
    if not isinstance(data, Result) or "target_transform" in data.kwargs:
        return False
    return data.maker.rsplit(".", 1)[-1] in CLASSIFICATION
